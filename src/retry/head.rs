//! The head of a request, written down so that it can be sent again.
//!
//! # Why it is not cloned
//!
//! Few calls are ever refused, so what matters is what keeping a head costs
//! and not what rebuilding it does. A clone of a `HeaderMap` is two allocations
//! and a reference count for each value; one buffer is one allocation and a
//! copy.

use bytes::{Buf, Bytes};
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version,
    uri::{Authority, PathAndQuery, Scheme},
};

/// The head of a request in one buffer.
///
/// # Layout
///
/// Pairs, each eight bytes of lengths and then the bytes of both: scheme and
/// method, nothing and authority, nothing and path with query (empty where the
/// URI has none), then name and value of each header in order.
#[derive(Debug)]
pub(crate) struct HeadCopy {
    fields: Vec<u8>,
    version: Version,
    headers: usize,
    extensions: Extensions,
}

/// What a pair takes up as a rule, its lengths included. To guess and seldom
/// grow costs less than to look at every pair twice.
const PAIR: usize = 48;

/// Where the lengths of a pair stand in its prefix: that of the first, which is
/// under 2¹⁶ for names and schemes, in the highest bits; that of the second above
/// the lowest one, which is the sensitive mark.
const FIRST: u32 = 48;

impl HeadCopy {
    /// Writes down the head of `request`.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let mut fields = Vec::with_capacity(PAIR * (3 + headers.len()));
        put(
            &mut fields,
            uri.scheme_str().unwrap_or_default(),
            request.method().as_str().as_bytes(),
            false,
        );
        let path = uri
            .path_and_query()
            // `as_str` would make "/" of a path that is not there.
            .filter(|_| !uri.path().is_empty())
            .map_or("", PathAndQuery::as_str);
        let authority = uri.authority().map_or("", Authority::as_str);
        put(&mut fields, "", authority.as_bytes(), false);
        put(&mut fields, "", path.as_bytes(), false);
        for (name, value) in headers {
            put(
                &mut fields,
                name.as_str(),
                value.as_bytes(),
                value.is_sensitive(),
            );
        }

        let extensions = request.extensions();
        Self {
            fields,
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
        let (scheme, method, _) = take(&mut fields)?;
        let method = Method::from_bytes(&method).ok()?;
        let (_, authority, _) = take(&mut fields)?;
        let (_, path, _) = take(&mut fields)?;
        let uri = uri(&scheme, authority, path)?;

        let mut headers = HeaderMap::try_with_capacity(self.headers).ok()?;
        while fields.has_remaining() {
            let (name, value, sensitive) = take(&mut fields)?;
            let name = HeaderName::from_bytes(&name).ok()?;
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

#[inline]
fn put(fields: &mut Vec<u8>, first: &str, second: &[u8], mark: bool) {
    // No slice is longer than `isize::MAX`, and none of these comes near 2⁴⁷.
    let prefix = (first.len() as u64) << FIRST | (second.len() as u64) << 1 | u64::from(mark);
    fields.reserve(size_of_val(&prefix) + first.len() + second.len());
    fields.extend_from_slice(&prefix.to_ne_bytes());
    fields.extend_from_slice(first.as_bytes());
    fields.extend_from_slice(second);
}

fn take(fields: &mut Bytes) -> Option<(Bytes, Bytes, bool)> {
    let prefix = fields.try_get_u64_ne().ok()?;
    let lengths = [prefix >> FIRST, (prefix & ((1 << FIRST) - 1)) >> 1];
    let [first, second] = lengths.map(|length| {
        let length = usize::try_from(length).ok()?;
        (length <= fields.len()).then(|| fields.split_to(length))
    });
    Some((first?, second?, prefix & 1 == 1))
}

fn uri(scheme: &[u8], authority: Bytes, path: Bytes) -> Option<Uri> {
    let mut uri = http::uri::Parts::default();
    if !scheme.is_empty() {
        uri.scheme = Some(Scheme::try_from(scheme).ok()?);
    }
    if !authority.is_empty() {
        uri.authority = Some(Authority::from_maybe_shared(authority).ok()?);
    }
    if !path.is_empty() {
        uri.path_and_query = Some(PathAndQuery::from_maybe_shared(path).ok()?);
    }
    Uri::from_parts(uri).ok()
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    fn uris() -> impl Strategy<Value = Uri> {
        let forms = prop_oneof![
            Just("/".to_owned()),
            Just("*".to_owned()),
            "/[a-z0-9%/]{0,20}(\\?[a-z0-9=&%]{0,20})?",
            "[a-z0-9.]{1,20}(:[0-9]{1,4})?",
            "(http|HTTPS|ws|git\\+ssh)://([a-z]{1,8}(:[a-z]{1,8})?@)?[a-zA-Z0-9.]{1,20}(:[0-9]{1,4})?",
            "https?://\\[::1\\](:[0-9]{1,4})?(/[a-zé]{0,9})?(\\?[a-z&=]{0,9})?",
        ];
        forms.prop_filter_map("no URI", |uri| uri.parse().ok())
    }

    fn names() -> impl Strategy<Value = HeaderName> {
        prop_oneof![
            Just(http::header::ACCEPT),
            Just(http::header::AUTHORIZATION),
            Just(http::header::COOKIE),
            "[a-z0-9!#$%&'*+.^_`|~-]{1,80}".prop_map(|name| name.parse().unwrap()),
        ]
    }

    fn values() -> impl Strategy<Value = HeaderValue> {
        let bytes = prop::collection::vec(any::<u8>(), 0..80);
        let values = bytes.prop_filter_map("no value", |mut bytes| {
            bytes.retain(|byte| matches!(byte, b'\t' | 32..=126 | 128..));
            HeaderValue::from_bytes(&bytes).ok()
        });
        (values, any::<bool>()).prop_map(|(mut value, sensitive)| {
            value.set_sensitive(sensitive);
            value
        })
    }

    fn requests() -> impl Strategy<Value = Request<()>> {
        let versions = prop::sample::select(vec![
            Version::HTTP_09,
            Version::HTTP_10,
            Version::HTTP_11,
            Version::HTTP_2,
            Version::HTTP_3,
        ]);
        let headers = prop::collection::vec((names(), values()), 0..20);
        let methods = "GET|POST|[A-Za-z!#$%&'*+.^_`|~-]{1,40}";
        (methods, uris(), versions, headers, any::<Option<u32>>()).prop_map(
            |(method, uri, version, headers, extension)| {
                let mut request = Request::new(());
                *request.method_mut() = method.parse().unwrap();
                *request.uri_mut() = uri;
                *request.version_mut() = version;
                for (name, value) in headers {
                    request.headers_mut().append(name, value);
                }
                if let Some(extension) = extension {
                    request.extensions_mut().insert(extension);
                }
                request
            },
        )
    }

    /// Everything that can be told of a head, in its order.
    fn told(request: &Request<()>) -> impl PartialEq + std::fmt::Debug {
        let headers: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.clone(),
                    value.as_bytes().to_vec(),
                    value.is_sensitive(),
                )
            })
            .collect();
        let uri = request.uri();
        (
            request.method().clone(),
            uri.to_string(),
            uri.clone().into_parts().scheme,
            uri.authority().cloned(),
            uri.path_and_query().cloned(),
            request.version(),
            headers,
            request.extensions().get::<u32>().copied(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(429),
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_head_is_rebuilt_as_it_was(request in requests()) {
            let copy = HeadCopy::of(&request);
            for _ in 0..2 {
                let rebuilt = copy.rebuild().expect("a checked head");
                prop_assert_eq!(told(&rebuilt), told(&request));
                prop_assert_eq!(rebuilt.uri(), request.uri());
            }
        }
    }

    #[test]
    fn a_uri_without_any_part_stays_without() {
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_parts(http::uri::Parts::default()).unwrap();
        let rebuilt = HeadCopy::of(&request).rebuild().unwrap();
        assert_eq!(rebuilt.uri().path(), request.uri().path());
        assert_eq!(rebuilt.uri(), request.uri());
    }

    #[test]
    fn an_authority_longer_than_any_uri_that_is_parsed_is_kept() {
        let host = "h".repeat(70_000);
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(Authority::try_from(host.as_str()).unwrap());
        parts.path_and_query = Some(PathAndQuery::from_static("/a?b"));
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_parts(parts).unwrap();
        let rebuilt = HeadCopy::of(&request).rebuild().unwrap();
        assert_eq!(rebuilt.uri(), request.uri());
    }

    #[test]
    fn a_name_longer_than_any_table_is_kept() {
        let name = HeaderName::from_bytes(&[b'n'; 65_535]).unwrap();
        let value = HeaderValue::from_bytes(&vec![b'v'; 1_000_000]).unwrap();
        let mut request = Request::new(());
        request.headers_mut().insert(name.clone(), value.clone());
        let rebuilt = HeadCopy::of(&request).rebuild().unwrap();
        assert_eq!(rebuilt.headers().get(name), Some(&value));
    }
}
