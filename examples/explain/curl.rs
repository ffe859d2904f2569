//! An HTTP response as `curl -i` prints it.

use std::{error::Error, time::SystemTime};

use http::{HeaderMap, Response, Uri, response::Parts};

use crate::answer::Answer;

/// More fields than any server sends.
const MOST_FIELDS: usize = 1024;

/// Reads what `curl -i` prints. Of several heads, of redirects and proxies, the
/// last one counts.
pub(crate) fn read(mut text: &[u8], url: Option<Uri>) -> Result<Answer, Box<dyn Error>> {
    let head = loop {
        let (head, rest) = head(text)?;
        text = rest;
        if !text.starts_with(b"HTTP/") {
            break head;
        }
    };
    Ok(Answer {
        head,
        body: text.to_vec(),
        trailers: HeaderMap::new(),
        url,
        at: received(),
    })
}

/// An answer that is read from a file is taken for one that has just come.
#[allow(
    clippy::disallowed_methods,
    reason = "the crate's own clock is not public"
)]
fn received() -> SystemTime {
    SystemTime::now()
}

/// One head, and what follows it.
fn head(text: &[u8]) -> Result<(Parts, &[u8]), Box<dyn Error>> {
    // httparse knows the status line of HTTP/1 only; `HTTP/2 429` is curl's own.
    let version = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
    if !text.starts_with(b"HTTP/") {
        return Err("no status line: print the answer with `curl -i`".into());
    }
    let as_http1 = [b"HTTP/1.1", &text[version..]].concat();
    let mut fields = vec![httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(end) = parsed.parse(&as_http1)? else {
        return Err("the head of the answer is cut off".into());
    };
    let response = Response::builder().status(parsed.code.unwrap_or_default());
    let response = parsed.headers.iter().fold(response, |response, field| {
        response.header(field.name, field.value)
    });
    let (head, ()) = response.body(())?.into_parts();
    let rest = text.len() - (as_http1.len() - end);
    Ok((head, &text[rest..]))
}
