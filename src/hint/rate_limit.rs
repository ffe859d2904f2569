//! The `RateLimit` fields of the HTTPAPI working group.
//!
//! Three forms of draft-ietf-httpapi-ratelimit-headers are in use:
//!
//! | drafts | fields |
//! | --- | --- |
//! | from 08 on | `RateLimit: "burst";r=0;t=10`, `RateLimit-Policy: "burst";q=100;w=60` |
//! | 07 | `RateLimit: limit=100, remaining=0, reset=10`, `RateLimit-Policy: 100;w=60` |
//! | until 06 | `RateLimit-Limit: 100, 100;w=60`, `RateLimit-Remaining: 0`, `RateLimit-Reset: 10` |
//!
//! All waits are delays in seconds; but some services put a Unix time or a date
//! there, so they are read by magnitude, as [`retry_after`] is.
//!
//! [`retry_after`]: super::retry_after()

use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, HeaderName, header::AGE};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parameters, Parser};

use super::{Dimension, Remaining, ServerClock, retry_after};
use crate::verdict::Hint;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// A longer field is not read: a server tells of a few policies only.
const MOST_BYTES: usize = 4096;

/// More members are not read: to join them takes time by their number squared.
const MOST_MEMBERS: usize = 64;

/// The names of a pair of fields of the newer forms.
#[derive(Clone, Debug)]
pub(crate) struct RateLimitFields {
    limit: HeaderName,
    policy: HeaderName,
}

impl RateLimitFields {
    /// The names that the draft gives them.
    pub(crate) const DRAFT: Self = Self {
        limit: HeaderName::from_static("ratelimit"),
        policy: HeaderName::from_static("ratelimit-policy"),
    };

    /// The names that a service gives them by way of trial.
    #[cfg(feature = "providers")]
    pub(crate) const fn named(limit: HeaderName, policy: HeaderName) -> Self {
        Self { limit, policy }
    }

    /// Reads what an answer tells of its quotas.
    ///
    /// Nothing if it comes from a cache, for then it is not of now (section 5
    /// of the draft).
    pub(crate) fn read(&self, headers: &HeaderMap, clock: &ServerClock<'_>) -> Vec<Dimension> {
        if headers.get(AGE).is_some_and(|age| age.as_bytes() != b"0") {
            return Vec::new();
        }
        let mut dimensions: Vec<_> = texts(headers, &self.limit)
            .flat_map(|text| limits(text, &self.limit, clock))
            .take(MOST_MEMBERS)
            .collect();
        if dimensions.is_empty() {
            dimensions.extend(separate_fields(headers, clock));
        }
        let policies = texts(headers, &self.policy).flat_map(policies);
        for policy in policies.take(MOST_MEMBERS) {
            join(&mut dimensions, policy);
        }
        dimensions
    }
}

fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok().filter(|text| text.len() <= MOST_BYTES))
}

/// `RateLimit`, as a list or, in draft 07, as a dictionary.
fn limits(text: &str, name: &HeaderName, clock: &ServerClock<'_>) -> Vec<Dimension> {
    let source = || name.as_str().to_owned();
    if let Some(items) = list(text) {
        let dimension = |Item { bare_item, params }| Dimension {
            name: text_of(&bare_item),
            remaining: remaining(params.get("r")),
            reset: params.get("t").and_then(|t| reset(t, source(), clock)),
            ..Dimension::default()
        };
        return items.map(dimension).collect();
    }
    let Ok(members) = Parser::new(text).parse::<Dictionary>() else {
        return Vec::new();
    };
    let member = |name: &str| match members.get(name) {
        Some(ListEntry::Item(item)) => Some(&item.bare_item),
        _ => None,
    };
    let [limit, left, resets] = ["limit", "remaining", "reset"].map(member);
    let dimension = Dimension {
        limit: limit.and_then(units),
        remaining: remaining(left),
        reset: resets.and_then(|t| reset(t, source(), clock)),
        ..Dimension::default()
    };
    let is_told = limit.or(left).or(resets).is_some();
    is_told.then_some(dimension).into_iter().collect()
}

/// `RateLimit-Policy`, of which each member describes one dimension.
fn policies(text: &str) -> impl Iterator<Item = Dimension> {
    let policy = |Item { bare_item, params }: Item| Dimension {
        name: text_of(&bare_item),
        // Draft 08 called it `l`, and the older ones had it as the item itself.
        limit: ["q", "l"]
            .into_iter()
            .find_map(|name| params.get(name))
            .or(Some(&bare_item))
            .and_then(units),
        window: window(&params),
        concurrent: params.get("qu").and_then(text_of).as_deref() == Some("concurrent-requests"),
        ..Dimension::default()
    };
    list(text).into_iter().flatten().map(policy)
}

/// The three fields of the drafts until 06.
fn separate_fields(headers: &HeaderMap, clock: &ServerClock<'_>) -> Option<Dimension> {
    let [limit, left, resets] =
        [&LIMIT, &REMAINING, &RESET].map(|name| texts(headers, name).next());
    limit.or(left).or(resets)?;
    // The first member is the limit in force, the others are the policies.
    let limits: Vec<_> = limit.and_then(list).into_iter().flatten().collect();
    let in_force = limits.first().map(|item| &item.bare_item);
    let same = limits
        .iter()
        .filter(|item| Some(&item.bare_item) == in_force);
    let left = left.map(|text| list(text).and_then(|mut items| items.next()));
    Some(Dimension {
        limit: in_force.and_then(units),
        remaining: match left {
            None => Remaining::Untold,
            Some(None) => Remaining::Sentinel,
            Some(Some(item)) => remaining(Some(&item.bare_item)),
        },
        reset: resets.and_then(|text| {
            let (wait, _) = retry_after::wait(text.trim(), clock)?;
            Some(Hint::new(wait, "ratelimit-reset").raw(text.as_bytes()))
        }),
        window: same.map(|item| &item.params).find_map(window),
        ..Dimension::default()
    })
}

/// Adds what a policy says to the dimension that it describes.
fn join(dimensions: &mut Vec<Dimension>, policy: Dimension) {
    let described = |dimension: &&mut Dimension| match policy.name {
        Some(_) => dimension.name == policy.name,
        None => dimension.limit == policy.limit && dimension.window.is_none(),
    };
    match dimensions.iter_mut().find(described) {
        Some(dimension) => {
            dimension.limit = policy.limit;
            dimension.window = policy.window;
            dimension.concurrent = policy.concurrent;
        }
        None => dimensions.push(policy),
    }
}

/// The items of a list; inner lists have no meaning here.
fn list(text: &str) -> Option<impl Iterator<Item = Item> + use<>> {
    let parse = |text: &str| Parser::new(text).parse::<List>().ok();
    let list = parse(text).or_else(|| {
        // Hugging Face gives its policy two names, `"fixed window";"api";q=500`,
        // which is no structured field; the second is that of the dimension.
        let (_, second) = text.split_once("\";\"")?;
        parse(&format!("\"{second}"))
    })?;
    Some(list.into_iter().filter_map(|member| match member {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    }))
}

fn text_of(item: &BareItem) -> Option<Cow<'static, str>> {
    match item {
        BareItem::String(text) => Some(text.as_str().to_owned().into()),
        BareItem::Token(text) => Some(text.as_str().to_owned().into()),
        _ => None,
    }
}

fn units(item: &BareItem) -> Option<u64> {
    match item {
        BareItem::Integer(units) => u64::try_from(i64::from(*units)).ok(),
        _ => None,
    }
}

fn remaining(item: Option<&BareItem>) -> Remaining {
    match item {
        None => Remaining::Untold,
        Some(item) => units(item).map_or(Remaining::Sentinel, Remaining::Units),
    }
}

fn window(params: &Parameters) -> Option<Duration> {
    params.get("w").and_then(units).map(Duration::from_secs)
}

fn reset(item: &BareItem, source: String, clock: &ServerClock<'_>) -> Option<Hint> {
    let count = Duration::from_secs(units(item)?);
    let wait = clock.until_unix(count).unwrap_or(count);
    Some(Hint::new(wait, source).raw(count.as_secs().to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::hint::dimension::{spent, told};

    /// 2026-10-05T18:00:00Z.
    fn wall() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_791_223_200)
    }

    fn read(fields: &[(&'static str, &str)]) -> Vec<Dimension> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        RateLimitFields::DRAFT.read(&headers, &ServerClock::new(&headers, &wall))
    }

    /// Limit, remaining, reset and window, in seconds.
    type Told = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);

    fn first(fields: &[(&'static str, &str)]) -> Told {
        let quota = told(&read(fields)).unwrap().quota();
        let secs = |span: Option<Duration>| span.map(|span| span.as_secs());
        (
            quota.limit,
            quota.remaining,
            secs(quota.reset),
            secs(quota.window),
        )
    }

    #[test]
    fn a_limit_is_joined_with_its_policy_by_name() {
        let fields = [
            (
                "ratelimit-policy",
                "\"burst\";q=100;w=60,\"daily\";q=1000;w=86400",
            ),
            ("ratelimit", "\"burst\";r=0;t=10,\"daily\";r=412;t=50400"),
        ];
        let dimensions = read(&fields);
        assert_eq!(dimensions.len(), 2);
        let spent = spent(&dimensions).unwrap();
        assert_eq!(spent.name.as_deref(), Some("burst"));
        assert_eq!(first(&fields), (Some(100), Some(0), Some(10), Some(60)));
        assert_eq!(spent.reset.as_ref().unwrap().source(), "ratelimit");
    }

    #[test]
    fn the_forms_of_the_older_drafts_are_read() {
        let seven = [
            ("ratelimit", "limit=100, remaining=0, reset=30"),
            ("ratelimit-policy", "100;w=60"),
        ];
        assert_eq!(first(&seven), (Some(100), Some(0), Some(30), Some(60)));
        let three = [
            ("ratelimit-limit", "100, 10;w=1, 100;w=60"),
            ("ratelimit-remaining", "3"),
            ("ratelimit-reset", "50"),
        ];
        assert_eq!(first(&three), (Some(100), Some(3), Some(50), Some(60)));
    }

    #[test]
    fn a_reset_is_read_by_magnitude() {
        for reset in [
            "1791223243",
            "1791223243000",
            "Mon, 05 Oct 2026 18:00:43 GMT",
            "43",
        ] {
            let fields = [("ratelimit-limit", "60"), ("ratelimit-reset", reset)];
            assert_eq!(first(&fields), (Some(60), None, Some(43), None), "{reset}");
        }
    }

    #[test]
    fn a_value_with_a_window_is_read() {
        let fields = [
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "95;w=21600"),
        ];
        assert_eq!(first(&fields), (Some(100), Some(95), None, Some(21_600)));
    }

    #[test]
    fn a_policy_with_two_names_goes_by_the_second() {
        let fields = [
            ("ratelimit", "\"api\";r=0;t=55"),
            ("ratelimit-policy", "\"fixed window\";\"api\";q=500;w=300"),
        ];
        assert_eq!(first(&fields), (Some(500), Some(0), Some(55), Some(300)));
    }

    #[test]
    fn a_sentinel_is_no_number_of_units() {
        for left in ["-1", "unlimited", "?1", "(1 2)"] {
            let fields = [("ratelimit-remaining", left), ("ratelimit-reset", "0")];
            let dimensions = read(&fields);
            assert_eq!(dimensions[0].remaining, Remaining::Sentinel, "{left}");
            assert!(spent(&dimensions).is_none());
        }
        let dimensions = read(&[("ratelimit", "\"a\";r=-1;t=0")]);
        assert!(spent(&dimensions).is_none());
    }

    #[test]
    fn the_unit_of_a_policy_tells_requests_at_once_from_requests_in_a_time() {
        let dimensions = read(&[
            ("ratelimit", "\"slots\";r=0"),
            (
                "ratelimit-policy",
                "\"slots\";q=8;qu=\"concurrent-requests\"",
            ),
        ]);
        assert!(spent(&dimensions).unwrap().concurrent);
    }

    #[test]
    fn what_comes_from_a_cache_is_not_of_now() {
        let spent = ("ratelimit", "\"a\";r=0;t=30");
        assert!(read(&[spent, ("age", "7")]).is_empty());
        assert_eq!(read(&[spent, ("age", "0")]).len(), 1);
    }

    #[test]
    fn of_very_many_members_the_first_are_read_and_of_a_very_long_field_none() {
        let long = vec!["\"a\";r=0"; 600].join(",");
        assert!(read(&[("ratelimit", &long)]).is_empty());
        let many = |name: &'static str, first: u32| {
            let members = (first..first + 300).map(|nth| format!("\"{nth}\";r=0"));
            (name, members.collect::<Vec<_>>().join(", "))
        };
        let fields = [many("ratelimit", 0), many("ratelimit-policy", 300)];
        let dimensions = read(&fields.each_ref().map(|(name, text)| (*name, &**text)));
        assert_eq!(dimensions.len(), 2 * MOST_MEMBERS);
    }

    #[test]
    fn what_is_no_structured_field_is_not_there() {
        for value in [
            "\"api\";r=0;t=",
            "\"api",
            "r=0;;",
            "policy;r=0, t=10",
            "\u{7f}",
        ] {
            let Ok(value) = HeaderValue::from_str(value) else {
                continue;
            };
            let mut headers = HeaderMap::new();
            headers.insert("ratelimit", value);
            let clock = ServerClock::new(&headers, &wall);
            let dimensions = RateLimitFields::DRAFT.read(&headers, &clock);
            assert!(spent(&dimensions).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(values in prop::collection::vec("[ -~\u{80}-\u{ff}]{0,60}", 6)) {
            let names = ["ratelimit", "ratelimit-policy", "ratelimit-limit",
                "ratelimit-remaining", "ratelimit-reset", "date"];
            let mut headers = HeaderMap::new();
            for (name, value) in names.into_iter().zip(&values) {
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.append(name, value);
                }
            }
            let clock = ServerClock::new(&headers, &wall);
            let dimensions = RateLimitFields::DRAFT.read(&headers, &clock);
            let _ = (spent(&dimensions), told(&dimensions).map(Dimension::quota));
        }
    }
}
