//! The head of a request, written down so that it can be sent again.
//!
//! # Why it is not cloned
//!
//! Few calls are ever refused, so what matters is what keeping a head costs
//! and not what rebuilding it does. A clone of a `HeaderMap` is two allocations
//! and a reference count for each value; one buffer is one allocation and a
//! copy.

use bytes::{Buf, BufMut, Bytes};
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    uri::{Authority, PathAndQuery, Scheme},
};

/// The head of a request in one buffer.
///
/// # Layout
///
/// Fields, each a length of eight bytes and its bytes: method, scheme,
/// authority, path with query (empty where the URI has none), then name and
/// value of each header in order. The lowest bit of a length is the sensitive
/// mark.
#[derive(Debug)]
pub(crate) struct HeadCopy {
    fields: Box<[u8]>,
    version: Version,
    headers: usize,
    extensions: Extensions,
}

/// The length of a field and its mark.
const PREFIX: usize = size_of::<u64>();

impl HeadCopy {
    /// Writes down the head of `request`.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let start = [
            request.method().as_str(),
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", Authority::as_str),
            // `as_str` would make "/" of a path that is not there.
            uri.path_and_query()
                .filter(|_| !uri.path().is_empty())
                .map_or("", PathAndQuery::as_str),
        ];
        let headers = request.headers();
        let length = start
            .iter()
            .map(|field| PREFIX + field.len())
            .sum::<usize>()
            + headers
                .iter()
                .map(|(name, value)| 2 * PREFIX + name.as_str().len() + value.len())
                .sum::<usize>();

        let mut fields = Vec::with_capacity(length);
        for field in start {
            put(&mut fields, field.as_bytes(), false);
        }
        for (name, value) in headers {
            put(&mut fields, name.as_str().as_bytes(), false);
            put(&mut fields, value.as_bytes(), value.is_sensitive());
        }

        let extensions = request.extensions();
        Self {
            fields: fields.into_boxed_slice(),
            version: request.version(),
            headers: headers.keys_len(),
            extensions: if extensions.is_empty() {
                Extensions::new()
            } else {
                extensions.clone()
            },
        }
    }

    /// The head as it was.
    ///
    /// `None` if a part of it was made without its type's checks and does not
    /// pass them.
    pub(crate) fn rebuild(&self) -> Option<Request<()>> {
        // Values and URI are slices of one copy.
        let mut fields = Bytes::copy_from_slice(&self.fields);
        let (method, _) = take(&mut fields)?;
        let method = Method::from_bytes(&method).ok()?;
        let uri = take_uri(&mut fields)?;

        let mut headers = HeaderMap::try_with_capacity(self.headers).ok()?;
        while fields.has_remaining() {
            let (name, _) = take(&mut fields)?;
            let name = HeaderName::from_bytes(&name).ok()?;
            let (value, sensitive) = take(&mut fields)?;
            let mut value = HeaderValue::from_maybe_shared(value).ok()?;
            value.set_sensitive(sensitive);
            headers.try_append(name, value).ok()?;
        }

        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = self.version;
        *request.headers_mut() = headers;
        *request.extensions_mut() = self.extensions.clone();
        Some(request)
    }
}

fn put(fields: &mut Vec<u8>, field: &[u8], mark: bool) {
    // No slice is longer than `isize::MAX`, so the shift loses nothing.
    fields.put_u64_ne((field.len() as u64) << 1 | u64::from(mark));
    fields.put_slice(field);
}

fn take(fields: &mut Bytes) -> Option<(Bytes, bool)> {
    let prefix = fields.try_get_u64_ne().ok()?;
    let length = usize::try_from(prefix >> 1).ok()?;
    let field = (length <= fields.len()).then(|| fields.split_to(length))?;
    Some((field, prefix & 1 == 1))
}

fn take_uri(fields: &mut Bytes) -> Option<Uri> {
    let (scheme, _) = take(fields)?;
    let (authority, _) = take(fields)?;
    let (path, _) = take(fields)?;
    let mut uri = http::uri::Parts::default();
    if !scheme.is_empty() {
        uri.scheme = Some(Scheme::try_from(&*scheme).ok()?);
    }
    if !authority.is_empty() {
        uri.authority = Some(Authority::from_maybe_shared(authority).ok()?);
    }
    if !path.is_empty() {
        uri.path_and_query = Some(PathAndQuery::from_maybe_shared(path).ok()?);
    }
    Uri::from_parts(uri).ok()
}
