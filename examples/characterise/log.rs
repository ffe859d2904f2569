//! Reading a log: CSV, JSON lines or a JSON array, told apart by looking.

use std::fmt;

use serde_json::{Map, Value};

use crate::fields::{Answer, Field, Fields};

/// What was read, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) answers: Vec<Answer>,
    pub(crate) problems: Vec<Problem>,
}

/// An entry that could not be read, and why.
#[derive(Debug, PartialEq)]
pub(crate) struct Problem {
    /// `line 7`, or `entry 7` in an array.
    place: String,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Log {
    fn add(&mut self, place: String, entry: Result<Fields, String>) {
        match entry.and_then(|fields| fields.answer()) {
            Ok(answer) => self.answers.push(answer),
            Err(what) => self.problems.push(Problem { place, what }),
        }
    }
}

/// Reads a log.
///
/// # Errors
///
/// Returns what is wrong with the log as a whole. An entry that can't be read
/// is one of its [`problems`](Log::problems), and the others count.
pub(crate) fn read(bytes: &[u8]) -> Result<Log, String> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("the log is UTF-16; convert it to UTF-8".into());
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    match text.trim_start().chars().next() {
        None => Err("the log is empty".into()),
        Some('{') if is_pretty(text) => Ok(json_objects(text)),
        Some('{') => Ok(json_lines(text)),
        Some('[') => json_array(text),
        Some(_) => csv(text),
    }
}

fn json_lines(text: &str) -> Log {
    let mut log = Log::default();
    for (number, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let entry = serde_json::from_str(line).map_err(|error| error.to_string());
            log.add(format!("line {}", number + 1), entry.and_then(json_fields));
        }
    }
    log
}

/// Whether an object is written over several lines, as `jq` does.
fn is_pretty(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    serde_json::from_str::<Value>(first).is_err_and(|error| error.is_eof())
}

/// Nothing is read beyond the first that is none: where the next begins is not
/// to be told.
fn json_objects(text: &str) -> Log {
    let mut log = Log::default();
    let entries = serde_json::Deserializer::from_str(text).into_iter();
    for (number, entry) in entries.enumerate() {
        let entry = entry.map_err(|error: serde_json::Error| error.to_string());
        log.add(format!("entry {}", number + 1), entry.and_then(json_fields));
    }
    log
}

fn json_array(text: &str) -> Result<Log, String> {
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut log = Log::default();
    for (number, entry) in entries.into_iter().enumerate() {
        log.add(format!("entry {}", number + 1), json_fields(entry));
    }
    Ok(log)
}

fn json_fields(entry: Value) -> Result<Fields, String> {
    let Value::Object(members) = entry else {
        return Err("not an object".into());
    };
    let mut fields = Fields::default();
    add_members(&members, &mut fields, 0);
    Ok(fields)
}

/// How deep `response.headers["Retry-After"]` may lie.
const DEPTH: usize = 3;

fn add_members(members: &Map<String, Value>, fields: &mut Fields, depth: usize) {
    for (name, value) in members {
        match value {
            Value::Object(inner) if depth < DEPTH => add_members(inner, fields, depth + 1),
            _ => {
                if let (Some(field), Some(text)) = (Field::named(name), scalar(value)) {
                    fields.add(field, &text);
                }
            }
        }
    }
}

/// A value as text; headers are often kept as lists.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().filter_map(scalar).collect();
            Some(values.join(", "))
        }
        _ => None,
    }
}

fn csv(text: &str) -> Result<Log, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter(text))
        .comment(Some(b'#'))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| error.to_string())?;
    let columns: Vec<_> = names.iter().map(Field::named).collect();
    let has = |fields: &[Field]| columns.iter().flatten().any(|field| fields.contains(field));
    for (what, fields) in [
        ("time", &[Field::Time, Field::Date][..]),
        ("status", &[Field::Status]),
    ] {
        if !has(fields) {
            let names: Vec<_> = names.iter().collect();
            return Err(format!(
                "line 1: no column for the {what} among {names:?}; is it the header line?"
            ));
        }
    }

    let mut log = Log::default();
    let mut records = reader.records();
    while let Some(record) = records.next() {
        let next = records.reader().position().line();
        match record {
            Ok(record) => {
                let line = record.position().map_or(0, csv::Position::line);
                let mut fields = Fields::default();
                for (field, text) in columns.iter().zip(&record) {
                    if let Some(field) = field {
                        fields.add(*field, text);
                    }
                }
                // One quote too many makes one entry of all that follows.
                let place = match next.saturating_sub(line) {
                    0 | 1 => format!("line {line}"),
                    _ => format!("lines {line} to {} in one pair of quotes", next - 1),
                };
                log.add(place, Ok(fields));
            }
            Err(error) => log.problems.push(Problem {
                place: error
                    .position()
                    .map_or_else(String::new, |at| format!("line {}", at.line())),
                what: error.to_string(),
            }),
        }
    }
    Ok(log)
}

/// The one of comma, semicolon and tab that the header line has most of.
fn delimiter(text: &str) -> u8 {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let header = lines.next().unwrap_or_default().as_bytes();
    let count = |delimiter: &u8| header.iter().filter(|byte| *byte == delimiter).count();
    *b"\t;,"
        .iter()
        .max_by_key(|delimiter| count(delimiter))
        .unwrap_or(&b',')
}

#[cfg(test)]
mod tests {
    use http::header::{DATE, RETRY_AFTER};

    use super::*;

    fn seen(text: &str) -> Vec<(String, u16, Option<String>)> {
        let log = read(text.as_bytes()).unwrap();
        assert_eq!(log.problems, []);
        log.answers
            .into_iter()
            .map(|answer| {
                let hint = answer.headers.get(RETRY_AFTER);
                let hint = hint.map(|value| value.to_str().unwrap().to_owned());
                (answer.host, answer.status.as_u16(), hint)
            })
            .collect()
    }

    fn one(host: &str, status: u16, hint: Option<&str>) -> Vec<(String, u16, Option<String>)> {
        vec![(host.to_owned(), status, hint.map(str::to_owned))]
    }

    #[test]
    fn csv_is_read_whatever_its_names_order_and_delimiter() {
        let expected = one("api.example.com", 429, Some("30"));
        for text in [
            "time,host,status,retry-after\n1791223200,api.example.com,429,30\n",
            "\u{feff}Status;Retry-After;URL;Timestamp\r\n\
             429 Too Many Requests;30;https://API.example.com/v1?q=1;2026-10-05T18:00:00Z\r\n",
            "# written by a script\nts\tcode\thostname\tretry_after\tpath\n\
             1791223200123\t429\tapi.example.com:443\t30\t/x\n",
            "time, host, status_code, response.headers.Retry-After\n\
             \"2026-10-05 18:00:00\", \"api.example.com\", \"429\", \"30\"\n",
            "date,host,status,RETRYAFTER\n2026-10-05T18:00:00Z,api.example.com,429,30",
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn json_is_read_whatever_its_names_and_nesting() {
        let expected = one("api.example.com", 429, Some("30"));
        for text in [
            r#"{"time":1791223200,"host":"api.example.com","status":429,"retry-after":30}"#,
            r#"{"timestamp":"2026-10-05T18:00:00Z","statusCode":"429","url":"https://api.example.com/a",
                "headers":{"Retry-After":["30"]}}"#,
            r#"{"@timestamp":"2026-10-05T18:00:00Z","request":{"host":"api.example.com"},
                "response":{"status":429.0,"headers":{"RETRY-AFTER":"30"}}}"#,
            r#"[{"ts":1791223200.5,"host":"api.example.com","status":429,"retry_after":"30"}]"#,
        ] {
            assert_eq!(seen(text), expected, "{text}");
            let twice = [&expected[..], &expected].concat();
            let lines = text.replace('\n', " ");
            if text.starts_with('{') {
                assert_eq!(seen(&format!("{lines}\n{lines}\n")), twice, "{lines}");
                assert_eq!(seen(&text.replace('{', "{\n").repeat(2)), twice, "{text}");
            }
        }
    }

    #[test]
    fn a_missing_hint_is_no_hint_and_a_missing_host_no_harm() {
        let csv = "time,status,retry-after\n1791223200,429,\n1791223201,200,-\n";
        let expected = [
            ("(no host)".to_owned(), 429, None),
            ("(no host)".to_owned(), 200, None),
        ];
        assert_eq!(seen(csv), expected);
        let short = "time,status,host,retry-after\n1791223200,429,a.example\n";
        assert_eq!(seen(short), one("a.example", 429, None));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line_and_the_rest_counts() {
        let csv =
            "time,host,status\n1791223200,a,200\nyesterday,a,200\n1791223202,a,\n1791223203,a,ok\n";
        let log = read(csv.as_bytes()).unwrap();
        let problems: Vec<_> = log.problems.iter().map(Problem::to_string).collect();
        let expected = [
            "line 3: no time: \"yesterday\"",
            "line 4: no status",
            "line 5: no status: \"ok\"",
        ];
        assert_eq!(problems, expected);
        assert_eq!(log.answers.len(), 1);

        let csv = "time,host,status\n1791223200,a,429\n1791223201,\"a,200\n1791223202,a,200\n";
        let log = read(csv.as_bytes()).unwrap();
        let problem = log.problems[0].to_string();
        assert_eq!(problem, "lines 3 to 4 in one pair of quotes: no status");

        let json = "{\"time\":1791223200,\"status\":200}\n\n{\"time\":\n[1]\n";
        let log = read(json.as_bytes()).unwrap();
        assert!(
            log.problems[0].to_string().starts_with("line 3: EOF"),
            "{:?}",
            log.problems
        );
        assert_eq!(log.problems[1].to_string(), "line 4: not an object");
        assert_eq!(log.answers.len(), 1);
    }

    #[test]
    fn a_log_that_cannot_be_one_is_an_error() {
        assert_eq!(read(b" \n").unwrap_err(), "the log is empty");
        let error = read(b"when,who\n1,2\n").unwrap_err();
        assert_eq!(
            error,
            "line 1: no column for the status among [\"when\", \"who\"]; is it the header line?"
        );
        assert!(read(b"[{]").is_err());
        let error = read(&[0xff, 0xfe, b't', 0]).unwrap_err();
        assert!(error.contains("UTF-16"), "{error}");
    }

    #[test]
    fn a_date_beside_a_time_is_the_answers_own() {
        let csv = "time,status,date\n1791223200,429,\"Mon, 05 Oct 2026 18:05:00 GMT\"\n";
        let log = read(csv.as_bytes()).unwrap();
        assert!(log.answers[0].headers.contains_key(DATE));
    }
}
