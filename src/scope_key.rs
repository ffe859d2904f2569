//! Scope keys: what a quota applies to, as a path of one to four segments.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    sync::OnceLock,
};

use http::{Extensions, HeaderMap, Method, Request, Uri, Version, header, uri};
use rand::Rng as _;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// The head of a request, borrowed: what a scope key is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl<'a> Head<'a> {
    /// The head of `request`.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The request's method.
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The request's URI.
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The request's HTTP version.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The request's headers.
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The request's extensions.
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }
}

/// What a quota applies to: a path of one to [`DEPTH`](ScopeKey::DEPTH)
/// segments.
///
/// `["api.example.com", "search"]` lies under `["api.example.com"]`: pausing
/// the latter pauses both. A key borrows from the request where it can, so
/// that looking up a known scope allocates nothing.
///
/// ```
/// use tower_retry_after::ScopeKey;
///
/// let key = ScopeKey::new("api.example.com").and("search").unwrap();
/// assert_eq!(key.to_string(), "api.example.com/search");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ScopeKey<'a> {
    segments: [Segment<'a>; ScopeKey::DEPTH],
    depth: u8,
}

/// One segment of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Segment<'a> {
    Text(Cow<'a, str>),
    /// Scheme, host and port of a URI, lower-cased.
    Origin(Cow<'a, str>, Cow<'a, str>, u16),
    /// What is kept of a credential.
    Digest(u128),
    /// All that found no place of their own.
    Overflow,
}

impl Segment<'_> {
    pub(crate) const fn is_secret(&self) -> bool {
        matches!(self, Self::Digest(_))
    }

    fn into_owned(self) -> Segment<'static> {
        match self {
            Self::Text(text) => Segment::Text(Cow::Owned(text.into_owned())),
            Self::Origin(scheme, host, port) => Segment::Origin(
                Cow::Owned(scheme.into_owned()),
                Cow::Owned(host.into_owned()),
                port,
            ),
            Self::Digest(digest) => Segment::Digest(digest),
            Self::Overflow => Segment::Overflow,
        }
    }
}

impl ScopeKey<'static> {
    /// How many segments a path has at most.
    pub const DEPTH: usize = 4;

    /// The default key: scheme, host and port of the URI.
    ///
    /// Lower-cased, the scheme's default port filled in, never the userinfo.
    /// The `Host` header stands in when the URI names no host; `None` if that
    /// is missing too.
    pub fn host<'a>(head: &Head<'a>) -> Option<ScopeKey<'a>> {
        let uri = head.uri();
        ScopeKey::host_of(uri).or_else(|| {
            let host = head.headers().get(header::HOST)?.to_str().ok()?;
            let (host, port) = split_host(host)?;
            Some(ScopeKey::origin(uri, host, port))
        })
    }
}

impl<'a> ScopeKey<'a> {
    /// The default key of requests to `uri`: to name their scope without a
    /// request at hand. `None` if the URI names no host.
    ///
    /// A text that looks the same is another key.
    ///
    /// ```
    /// use http::Uri;
    /// use tower_retry_after::ScopeKey;
    ///
    /// let uri = Uri::from_static("https://API.example.com/a?b");
    /// let key = ScopeKey::host_of(&uri).unwrap();
    /// assert_eq!(key.to_string(), "https://api.example.com:443");
    /// assert_ne!(key, ScopeKey::new("https://api.example.com:443"));
    /// ```
    pub fn host_of(uri: &'a Uri) -> Option<Self> {
        let authority = uri.authority()?;
        Some(Self::origin(uri, authority.host(), authority.port_u16()))
    }

    fn origin(uri: &'a Uri, host: &'a str, port: Option<u16>) -> Self {
        let scheme = lower(uri.scheme_str().unwrap_or("http"));
        let default = if scheme == "https" { 443 } else { 80 };
        Self::of(Segment::Origin(
            scheme,
            lower(host),
            port.unwrap_or(default),
        ))
    }

    /// A path of one segment.
    pub fn new(segment: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Segment::Text(segment.into()))
    }

    /// A path of one segment that stands for a credential. See
    /// [`and_secret`](Self::and_secret).
    pub fn secret(value: impl AsRef<[u8]>) -> Self {
        Self::of(SecretKey::of_this_process().digest(value.as_ref()))
    }

    fn of(segment: Segment<'a>) -> Self {
        const NONE: Segment<'_> = Segment::Text(Cow::Borrowed(""));
        let mut segments = [NONE; ScopeKey::DEPTH];
        segments[0] = segment;
        Self { segments, depth: 1 }
    }

    /// The path one segment further down; `None` if it is as long as it may
    /// be.
    pub fn and(self, segment: impl Into<Cow<'a, str>>) -> Option<Self> {
        self.push(Segment::Text(segment.into()))
    }

    /// The path one segment further down, by a credential that is not kept.
    ///
    /// Only a 128-bit keyed digest (SipHash-2-4) goes into the key, and only
    /// that is ever shown. Its key is random and differs from process to
    /// process; see [`and_secret_with`](Self::and_secret_with).
    ///
    /// `None` if the path is as long as it may be.
    pub fn and_secret(self, value: impl AsRef<[u8]>) -> Option<Self> {
        self.and_secret_with(SecretKey::of_this_process(), value)
    }

    /// As [`and_secret`](Self::and_secret), with a digest that several
    /// processes agree on when they are given the same `key`.
    pub fn and_secret_with(self, key: &SecretKey, value: impl AsRef<[u8]>) -> Option<Self> {
        self.push(key.digest(value.as_ref()))
    }

    fn push(mut self, segment: Segment<'a>) -> Option<Self> {
        *self.segments.get_mut(usize::from(self.depth))? = segment;
        self.depth += 1;
        Some(self)
    }

    /// How many segments the path has.
    pub const fn depth(&self) -> usize {
        self.depth as usize
    }

    /// The same key, borrowing nothing.
    pub fn into_owned(self) -> ScopeKey<'static> {
        ScopeKey {
            segments: self.segments.map(Segment::into_owned),
            depth: self.depth,
        }
    }

    /// The key of the scope that all those share who find no place under
    /// `self`; `None` stands for no parent.
    pub(crate) fn overflow(parent: Option<Self>) -> Self {
        match parent {
            None => Self::of(Segment::Overflow),
            Some(parent) => parent.clone().push(Segment::Overflow).unwrap_or(parent),
        }
    }

    /// The path without its last segment; `None` for a path of one.
    pub(crate) fn parent(&self) -> Option<Self> {
        let above = self.segments().split_last()?.1;
        (!above.is_empty()).then(|| Self::from_segments(above))
    }

    pub(crate) fn segments(&self) -> &[Segment<'a>] {
        self.segments.get(..self.depth()).unwrap_or(&[])
    }

    pub(crate) fn from_segments(segments: &[Segment<'a>]) -> Self {
        let mut from = segments.iter().cloned();
        let mut key = Self::of(from.next().unwrap_or(Segment::Text(Cow::Borrowed("-"))));
        for segment in from {
            match key.clone().push(segment) {
                Some(longer) => key = longer,
                None => break,
            }
        }
        key
    }
}

impl Hash for ScopeKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segments().hash(state);
    }
}

impl<'a> From<&'a str> for ScopeKey<'a> {
    fn from(segment: &'a str) -> Self {
        Self::new(segment)
    }
}

impl From<String> for ScopeKey<'_> {
    fn from(segment: String) -> Self {
        Self::new(segment)
    }
}

/// Segments joined by `/`; control characters escaped, credentials as digests.
impl fmt::Display for ScopeKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.segments().iter().enumerate() {
            if i > 0 {
                f.write_str("/")?;
            }
            match segment {
                Segment::Text(text) => write!(f, "{}", text.escape_debug())?,
                Segment::Origin(scheme, host, port) => {
                    write!(f, "{scheme}://{}:{port}", host.escape_debug())?;
                }
                Segment::Digest(digest) => write!(f, "#{digest:032x}")?,
                Segment::Overflow => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeKey({self})")
    }
}

/// The key of the digests that stand for credentials.
#[derive(Clone)]
pub struct SecretKey([u8; 16]);

impl SecretKey {
    /// A key of one's own, to be shared by several processes.
    pub const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    fn of_this_process() -> &'static Self {
        static KEY: OnceLock<SecretKey> = OnceLock::new();
        KEY.get_or_init(|| {
            let mut key = [0; 16];
            rand::rng().fill_bytes(&mut key);
            Self(key)
        })
    }

    fn digest<'a>(&self, value: &[u8]) -> Segment<'a> {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(value);
        Segment::Digest(hasher.finish128().as_u128())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

/// `text` in lower case, borrowed if it is that already.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// Host and port of a `Host` header; `None` if it is neither.
fn split_host(host: &str) -> Option<(&str, Option<u16>)> {
    let authority: uri::Authority = host.parse().ok()?;
    let name = authority.host().len();
    // A `Host` has no userinfo (RFC 9110, section 7.2): what has one is none.
    let name = host.get(..name).filter(|name| *name == authority.host())?;
    (!name.is_empty()).then_some((name, authority.port_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(uri: &str) -> String {
        let request = Request::get(uri).body(()).unwrap();
        ScopeKey::host(&Head::of(&request)).unwrap().to_string()
    }

    #[test]
    fn one_host_has_one_key_however_it_is_spelled() {
        assert_eq!(
            host_of("https://API.Example.com"),
            "https://api.example.com:443"
        );
        assert_eq!(
            host_of("https://u:p@api.example.com:443/x"),
            "https://api.example.com:443"
        );
        assert_eq!(
            host_of("http://api.example.com/x?y"),
            "http://api.example.com:80"
        );
        assert_eq!(host_of("http://[::1]:8080/"), "http://[::1]:8080");
    }

    #[test]
    fn the_host_header_stands_in_for_a_path_only_uri() {
        let request = Request::get("/x")
            .header("host", "a.example:81")
            .body(())
            .unwrap();
        let key = ScopeKey::host(&Head::of(&request)).unwrap();
        assert_eq!(key.to_string(), "http://a.example:81");
        for bad in ["", "u@a.example", "a b"] {
            let request = Request::get("/x").header("host", bad).body(()).unwrap();
            assert_eq!(ScopeKey::host(&Head::of(&request)), None, "{bad}");
        }
    }

    #[test]
    fn a_credential_is_never_shown() {
        let key = ScopeKey::new("a").and_secret("sk-live-123").unwrap();
        let again = ScopeKey::new("a").and_secret("sk-live-123").unwrap();
        assert_eq!(key, again);
        assert_ne!(key, ScopeKey::new("a").and_secret("sk-live-124").unwrap());
        assert!(!format!("{key:?} {key}").contains("sk-live"));
    }

    #[test]
    fn a_path_has_at_most_four_segments() {
        let key = ScopeKey::new("a")
            .and("b")
            .unwrap()
            .and("c")
            .unwrap()
            .and("d")
            .unwrap();
        assert_eq!(key.depth(), 4);
        assert_eq!(key.and("e"), None);
    }
}
