//! A file of answers whose meaning is known, one JSON object a line.

use std::{error::Error, fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use serde_json::Value;
use tower_retry_after::verdict::{RetryAdvice, Ruling, Verdict};

use crate::answer::Answer;

/// Two waits are the same if they are no further apart than this.
const GRAIN: f64 = 0.01;

/// An answer and what it means.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) provider: String,
    pub(crate) answer: Answer,
    expected: Value,
}

/// What a case expects and what was found instead.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) id: String,
    field: &'static str,
    found: Value,
    expected: Value,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            field,
            found,
            expected,
        } = self;
        write!(f, "{id}: {field} is {found}, expected {expected}")
    }
}

/// Reads the cases of a file.
pub(crate) fn read(text: &str) -> Result<Vec<Case>, Box<dyn Error>> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            Case::read(line).map_err(|error| format!("line {}: {error}", number + 1).into())
        })
        .collect()
}

impl Case {
    fn read(line: &str) -> Result<Self, Box<dyn Error>> {
        let case: Value = serde_json::from_str(line)?;
        let text = |pointer: &str| case.pointer(pointer).and_then(Value::as_str);
        let response = &case["response"];
        let status = response["status"].as_u64().ok_or("no status")?;
        let (mut head, ()) = Response::builder()
            .status(u16::try_from(status)?)
            .body(())?
            .into_parts();
        head.headers = fields(&response["headers"])?;
        let body = match text("/response/body_base64") {
            Some(encoded) => STANDARD.decode(encoded)?,
            None => text("/response/body").unwrap_or_default().into(),
        };
        let at: jiff::Timestamp = text("/now").ok_or("no time")?.parse()?;
        Ok(Self {
            id: text("/id").ok_or("no id")?.to_owned(),
            provider: text("/provider").unwrap_or_default().to_owned(),
            answer: Answer {
                head,
                body,
                trailers: fields(&response["trailers"])?,
                url: text("/request/url").map(str::parse).transpose()?,
                at: at.try_into()?,
            },
            expected: case["expect"].clone(),
        })
    }

    /// Compares what was found with what is expected; one line for each field
    /// that differs.
    pub(crate) fn compare(&self, verdict: &Verdict) -> Vec<Mismatch> {
        let quota = verdict.quota();
        let limit = quota.and_then(|quota| quota.limit).into();
        let remaining = quota.and_then(|quota| quota.remaining).into();
        let found = [
            ("class", class(verdict).into()),
            ("wait_s", wait(verdict).into()),
            ("do_not_retry", forbids(verdict).into()),
            ("limit", limit),
            ("remaining", remaining),
            ("code", verdict.code().into()),
        ];
        let differs = |(field, found): (&'static str, Value)| {
            let expected = self.expected.get(field)?.clone();
            let also = self.expected.get(format!("{field}_also_ok"));
            let also = also.and_then(Value::as_array).into_iter().flatten();
            let is_right = is_same(&found, &expected) || { also }.any(|also| is_same(&found, also));
            (!is_right).then(|| Mismatch {
                id: self.id.clone(),
                field,
                found,
                expected,
            })
        };
        found.into_iter().filter_map(differs).collect()
    }
}

/// The name that the cases give to a verdict.
pub(crate) fn class(verdict: &Verdict) -> &'static str {
    match verdict.ruling() {
        Ruling::Throttled(throttle) => throttle.kind.as_str(),
        Ruling::Exhausted(_) => "quota_exhausted",
        _ => "not_throttled",
    }
}

/// What the server asks for, in seconds: not what its documentation does, nor
/// what is longer than anything.
fn wait(verdict: &Verdict) -> Option<f64> {
    let hint = verdict
        .hint()
        .filter(|hint| hint.source() != "documentation")?;
    (hint.wait() < Duration::MAX).then(|| hint.wait().as_secs_f64())
}

fn forbids(verdict: &Verdict) -> bool {
    match verdict.ruling() {
        Ruling::Throttled(throttle) => throttle.retry == RetryAdvice::Never,
        ruling => matches!(ruling, Ruling::Exhausted(_)),
    }
}

fn is_same(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() <= GRAIN,
        _ => found == expected,
    }
}

fn fields(list: &Value) -> Result<HeaderMap, Box<dyn Error>> {
    let mut fields = HeaderMap::new();
    for pair in list.as_array().into_iter().flatten() {
        let text = |index: usize| pair[index].as_str().ok_or("a field is a pair of texts");
        let name: HeaderName = text(0)?.parse()?;
        fields.append(name, HeaderValue::from_str(text(1)?)?);
    }
    Ok(fields)
}
