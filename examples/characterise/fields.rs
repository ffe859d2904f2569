//! The fields of one answer, by whatever name.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
    header::{DATE, RETRY_AFTER},
};

use crate::times;

/// One answer of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) time: SystemTime,
    pub(crate) host: String,
    pub(crate) status: StatusCode,
    /// `Retry-After` and `Date`, as far as they were logged.
    pub(crate) headers: HeaderMap,
    /// From the sending of the request to `time`.
    pub(crate) duration: Option<Duration>,
}

/// What a column or a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Time,
    Host,
    Status,
    RetryAfter,
    Date,
    Seconds,
    Millis,
}

impl Field {
    /// Recognises a name, whatever its case and punctuation. `Headers.` and
    /// the like may stand before it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        Some(match name.as_str() {
            "time" | "timestamp" | "ts" | "datetime" | "at" | "when" | "epoch" => Self::Time,
            "host" | "hostname" | "server" | "authority" | "domain" | "url" | "uri" => Self::Host,
            "status" | "statuscode" | "code" | "httpstatus" | "responsestatus" => Self::Status,
            "date" | "responsedate" | "headersdate" | "responseheadersdate" => Self::Date,
            "duration" | "durations" | "elapsed" | "latency" | "took" | "seconds" => Self::Seconds,
            "durationms" | "elapsedms" | "latencyms" | "tookms" | "ms" => Self::Millis,
            name if name.ends_with("retryafter") => Self::RetryAfter,
            _ => return None,
        })
    }
}

/// The fields of one answer as text, in any order; empty ones are absent.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(Field, String)>);

impl Fields {
    pub(crate) fn add(&mut self, field: Field, text: &str) {
        // A quote after a blank is no quote to CSV, but was meant as one.
        let text = text.trim().trim_matches('"').trim();
        if !text.is_empty() {
            self.0.push((field, text.to_owned()));
        }
    }

    fn get(&self, field: Field) -> Option<&str> {
        let mut all = self.0.iter().filter(|(held, _)| *held == field);
        all.next().map(|(_, text)| text.as_str())
    }

    /// Makes an answer of the fields, or says what is wrong with them.
    pub(crate) fn answer(&self) -> Result<Answer, String> {
        // `date` is the time where nothing else is, and a header else.
        let (time, date) = match (self.get(Field::Time), self.get(Field::Date)) {
            (None, date) => (date, None),
            both => both,
        };
        let time = time.ok_or("no time")?;
        let status = self.get(Field::Status).ok_or("no status")?;
        let mut headers = HeaderMap::new();
        for (name, text) in [(RETRY_AFTER, self.get(Field::RetryAfter)), (DATE, date)] {
            add_header(&mut headers, name, text)?;
        }
        Ok(Answer {
            time: times::read(time).ok_or_else(|| format!("no time: {time:?}"))?,
            host: host(self.get(Field::Host).unwrap_or("(no host)")),
            status: read_status(status).ok_or_else(|| format!("no status: {status:?}"))?,
            headers,
            duration: self.duration()?,
        })
    }

    fn duration(&self) -> Result<Option<Duration>, String> {
        for (field, unit) in [(Field::Seconds, 1.0), (Field::Millis, 1e-3)] {
            if let Some(text) = self.get(field) {
                let wrong = || format!("no duration: {text:?}");
                let count: f64 = text.parse().map_err(|_| wrong())?;
                return Duration::try_from_secs_f64(count * unit)
                    .map(Some)
                    .map_err(|_| wrong());
            }
        }
        Ok(None)
    }
}

/// Some clients log an absent header as a word.
const ABSENT: [&str; 6] = ["-", "null", "none", "nil", "undefined", "n/a"];

fn add_header(headers: &mut HeaderMap, name: HeaderName, text: Option<&str>) -> Result<(), String> {
    let is_absent = |text: &str| ABSENT.iter().any(|word| text.eq_ignore_ascii_case(word));
    let Some(text) = text.filter(|text| !is_absent(text)) else {
        return Ok(());
    };
    let value = HeaderValue::from_str(text).map_err(|_| format!("no header value: {text:?}"))?;
    headers.insert(name, value);
    Ok(())
}

/// The status in `429`, `429.0`, `429 Too Many Requests` or `HTTP/1.1 429`.
fn read_status(text: &str) -> Option<StatusCode> {
    text.split_ascii_whitespace()
        .filter_map(|word| word.strip_suffix(".0").unwrap_or(word).parse().ok())
        .find_map(|code: u16| StatusCode::from_u16(code).ok())
}

/// The host in `api.example.com`, `API.example.com:443` or a whole URL.
fn host(text: &str) -> String {
    let uri = text.parse::<Uri>().ok();
    let authority = uri.as_ref().and_then(Uri::authority);
    authority
        .map_or(text, |authority| authority.host())
        .to_ascii_lowercase()
}
