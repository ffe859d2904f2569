//! Where a value stands in an answer.

use std::{borrow::Cow, cell::OnceCell};

use http::{HeaderName, response::Parts};
use serde_json::Value;

/// Text of a declaration: `'static` in the ones that come along.
pub(super) type Text = Cow<'static, str>;

/// An answer, as far as it has been read.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) head: &'a Parts,
    /// `None` until the body has been read.
    pub(super) body: Option<&'a [u8]>,
    /// The field that is being looked at, where a declaration is about several.
    pub(super) at_hand: Option<&'a str>,
    json: OnceCell<Option<Value>>,
}

impl<'a> Answer<'a> {
    pub(super) const fn new(head: &'a Parts, body: Option<&'a [u8]>) -> Self {
        Self {
            head,
            body,
            at_hand: None,
            json: OnceCell::new(),
        }
    }

    /// The same answer, with `value` at hand.
    pub(super) fn holding(&self, value: &'a str) -> Self {
        Self {
            at_hand: Some(value),
            ..Self::new(self.head, self.body)
        }
    }

    /// The body as JSON, parsed once. serde_json refuses what is nested too
    /// deep; what is cut off does not parse. A byte order mark may be ignored
    /// (RFC 8259, section 8.1).
    fn json(&self) -> Option<&Value> {
        let parse = || {
            let body = self.body?;
            serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok()
        };
        self.json.get_or_init(parse).as_ref()
    }
}

/// Where a value stands in an answer: a header field, a member of its body.
///
/// Made by [`header`], [`json`], [`text`], [`status_code`] and [`value`], and
/// narrowed down by its methods. Where there are several values, as of a
/// repeated field or of a pointer with a `*`, the first one that makes sense
/// counts.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is called where a hint is read from it.
    name: Text,
    place: Place,
    cuts: Vec<Cut>,
}

#[derive(Clone, Debug)]
enum Place {
    Status,
    /// No header has a name that is none.
    Header(Option<HeaderName>),
    HeaderJson(Option<HeaderName>, Pointer),
    Json(Pointer),
    Text,
    AtHand,
}

/// What is cut off from a value.
#[derive(Clone, Debug)]
enum Cut {
    After(Text),
    Until(Text),
    Between(Text, Text),
}

/// A header field, by its name.
pub fn header(name: impl Into<Text>) -> Source {
    let name = name.into();
    Source::new(Place::Header(name.parse().ok()), name)
}

/// Members of a JSON body, by a JSON pointer (RFC 6901) in which `*` stands for
/// every element: `/error/details/*/reason`.
///
/// If the body is an array, the pointer holds for its elements too: some APIs
/// wrap the same error in one now and then. Strings, numbers and booleans are values; `null` is none.
pub fn json(pointer: &str) -> Source {
    Source::new(Place::Json(Pointer::new(pointer)), pointer.to_owned())
}

/// The body as text.
pub fn text() -> Source {
    Source::new(Place::Text, "body")
}

/// The status of the answer, for services that have no other code.
pub fn status_code() -> Source {
    Source::new(Place::Status, "status")
}

/// The value of the field at hand, see [`QuotaFields::each`].
///
/// [`QuotaFields::each`]: super::QuotaFields::each
pub fn value() -> Source {
    Source::new(Place::AtHand, "field")
}

impl Source {
    fn new(place: Place, name: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            place,
            cuts: Vec::new(),
        }
    }

    /// The members of a header field that holds JSON, as by [`json`].
    #[must_use]
    pub fn json(mut self, pointer: &str) -> Self {
        if let Place::Header(name) = self.place {
            self.place = Place::HeaderJson(name, Pointer::new(pointer));
        }
        self
    }

    /// Keeps what stands after the last `mark`; everything if there is none.
    #[must_use]
    pub fn after(mut self, mark: impl Into<Text>) -> Self {
        self.cuts.push(Cut::After(mark.into()));
        self
    }

    /// Keeps what stands before the first `mark`; everything if there is none.
    #[must_use]
    pub fn until(mut self, mark: impl Into<Text>) -> Self {
        self.cuts.push(Cut::Until(mark.into()));
        self
    }

    /// Keeps what stands between the first `start` and the `end` after it.
    ///
    /// There is no value without `start`; without `end`, the rest is.
    #[must_use]
    pub fn between(mut self, start: impl Into<Text>, end: impl Into<Text>) -> Self {
        self.cuts.push(Cut::Between(start.into(), end.into()));
        self
    }

    pub(super) fn name(&self) -> Text {
        self.name.clone()
    }

    /// Whether it stands in the body.
    pub(super) const fn in_body(&self) -> bool {
        matches!(self.place, Place::Json(_) | Place::Text)
    }

    /// The first value of which `read` makes something.
    pub(super) fn find<T>(
        &self,
        answer: &Answer<'_>,
        mut read: impl FnMut(&str) -> Option<T>,
    ) -> Option<T> {
        let mut read = |text: &str| read(self.cut(text)?);
        match &self.place {
            Place::Status => read(answer.head.status.as_str()),
            Place::Header(name) => {
                let values = answer.head.headers.get_all(name.as_ref()?).iter();
                values
                    .filter_map(|value| value.to_str().ok())
                    .find_map(read)
            }
            Place::HeaderJson(name, pointer) => {
                let value = answer.head.headers.get(name.as_ref()?)?;
                let value: Value = serde_json::from_slice(value.as_bytes()).ok()?;
                pointer.find(&value, &mut read)
            }
            Place::Json(pointer) => pointer.find(answer.json()?, &mut read),
            Place::Text => read(&String::from_utf8_lossy(answer.body?)),
            Place::AtHand => read(answer.at_hand?),
        }
    }

    fn cut<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.cuts.iter().try_fold(text, |text, cut| match cut {
            Cut::After(mark) => Some(text.rsplit_once(&**mark).map_or(text, |(_, after)| after)),
            Cut::Until(mark) => Some(text.split_once(&**mark).map_or(text, |(before, _)| before)),
            Cut::Between(start, end) => {
                let (_, after) = text.split_once(&**start)?;
                Some(after.split_once(&**end).map_or(after, |(before, _)| before))
            }
        })
    }
}

/// A JSON pointer in which `*` stands for every element.
#[derive(Clone, Debug)]
struct Pointer(Box<[Box<str>]>);

impl Pointer {
    fn new(pointer: &str) -> Self {
        let steps = pointer.split('/').skip(1);
        Self(
            steps
                .map(|step| step.replace("~1", "/").replace("~0", "~").into())
                .collect(),
        )
    }

    fn find<T>(&self, value: &Value, read: &mut impl FnMut(&str) -> Option<T>) -> Option<T> {
        let found = walk(&self.0, value, read);
        found.or_else(|| {
            let mut items = value.as_array()?.iter();
            items.find_map(|item| walk(&self.0, item, read))
        })
    }
}

/// No deeper than the pointer is long.
fn walk<T>(
    steps: &[Box<str>],
    value: &Value,
    read: &mut impl FnMut(&str) -> Option<T>,
) -> Option<T> {
    let Some((step, steps)) = steps.split_first() else {
        return match value {
            Value::String(text) => read(text),
            Value::Number(_) | Value::Bool(_) => read(&value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
    };
    match value {
        Value::Array(items) if &**step == "*" => {
            items.iter().find_map(|item| walk(steps, item, read))
        }
        Value::Object(members) if &**step == "*" => members
            .values()
            .find_map(|member| walk(steps, member, read)),
        Value::Array(items) => walk(steps, items.get(step.parse::<usize>().ok()?)?, read),
        Value::Object(members) => walk(steps, members.get(&**step)?, read),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn find(source: &Source, fields: &[(&str, &str)], body: &str) -> Option<String> {
        let response = fields
            .iter()
            .fold(Response::builder(), |response, (name, value)| {
                response.header(*name, *value)
            });
        let (head, ()) = response.body(()).unwrap().into_parts();
        let answer = Answer::new(&head, Some(body.as_bytes()));
        source.find(&answer, |text| Some(text.to_owned()))
    }

    #[test]
    fn a_pointer_finds_members_and_every_element() {
        let body = r#"{"a":{"b":[{"c":null},{"c":7},{"c":"x"}]},"d":true,"e/f":"y"}"#;
        for (pointer, expected) in [
            ("/a/b/*/c", Some("7")),
            ("/a/b/2/c", Some("x")),
            ("/a/b/9/c", None),
            ("/*/b/*/c", Some("7")),
            ("/d", Some("true")),
            ("/e~1f", Some("y")),
            ("/a", None),
            ("/a/b/x", None),
            ("", None),
        ] {
            assert_eq!(
                find(&json(pointer), &[], body).as_deref(),
                expected,
                "{pointer}"
            );
        }
    }

    #[test]
    fn an_array_of_bodies_is_looked_into() {
        let body = r#"[{"error":{"status":"X"}}]"#;
        assert_eq!(
            find(&json("/error/status"), &[], body).as_deref(),
            Some("X")
        );
        assert_eq!(find(&json("/error/code"), &[], body), None);
    }

    #[test]
    fn a_byte_order_mark_does_not_hide_a_body() {
        let body = "\u{feff}{\"a\":1}";
        assert_eq!(find(&json("/a"), &[], body).as_deref(), Some("1"));
    }

    #[test]
    fn a_value_is_cut_to_size() {
        let fields = [("a", "x=1; y=2/40"), ("b", "none"), ("c", "d/e/f")];
        for (source, expected) in [
            (header("a").after("/"), Some("40")),
            (header("a").until(";"), Some("x=1")),
            (header("a").between("y=", "/"), Some("2")),
            (header("a").between("y=", ";"), Some("2/40")),
            (header("b").after("/"), Some("none")),
            (header("c").after("/"), Some("f")),
            (header("c").until("/"), Some("d")),
            (header("b").between("y=", ";"), None),
            (header("no name"), None),
        ] {
            assert_eq!(
                find(&source, &fields, "").as_deref(),
                expected,
                "{source:?}"
            );
        }
    }

    #[test]
    fn json_in_a_header_is_read() {
        let source = header("usage").json("/*/*/minutes");
        let fields = [("usage", r#"{"1":[{"minutes":19}]}"#)];
        assert_eq!(find(&source, &fields, "").as_deref(), Some("19"));
    }

    #[test]
    fn what_is_no_json_has_no_members() {
        let nested = "[".repeat(200) + &"]".repeat(200);
        for body in [
            "",
            "{",
            "\u{1f}\u{8b}",
            "<a/>",
            "{\"a\":1",
            "1e999",
            &nested,
        ] {
            assert_eq!(find(&json("/a"), &[], body), None, "{body}");
            assert_eq!(find(&json("/*/a"), &[], body), None, "{body}");
        }
    }
}
