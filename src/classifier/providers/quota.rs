//! Where a service tells of one dimension of its quotas.

use std::time::Duration;

use super::{
    rule::Test,
    source::{Answer, Source, Text},
};
use crate::{
    hint::{Dimension, Remaining, ServerClock, Unit, units},
    time,
    verdict::Hint,
};

/// Where a service tells of one dimension of its quotas: of requests, say, or
/// of tokens.
///
/// Each part may be given several times, for a service that spells it in
/// several ways; the first that is there counts.
#[derive(Clone, Debug)]
pub struct QuotaFields {
    name: Text,
    each: Option<Text>,
    when: Option<Test>,
    limit: Vec<Source>,
    remaining: Vec<Source>,
    used: Vec<Source>,
    rate: Vec<Source>,
    resets: Vec<(Source, Unit)>,
    window: Option<Duration>,
    windows: Vec<(Source, Unit)>,
}

impl QuotaFields {
    /// A dimension called `name`.
    pub fn new(name: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            each: None,
            when: None,
            limit: Vec::new(),
            remaining: Vec::new(),
            used: Vec::new(),
            rate: Vec::new(),
            resets: Vec::new(),
            window: None,
            windows: Vec::new(),
        }
    }

    /// A dimension for each header field whose name begins with `prefix`, in
    /// lower case. Its parts stand in the [`value`](super::value) of the field.
    pub fn each(prefix: impl Into<Text>) -> Self {
        let prefix = prefix.into();
        Self {
            each: Some(prefix.clone()),
            ..Self::new(prefix)
        }
    }

    /// The three header fields that many services have: limit, remaining, and
    /// reset in `unit`.
    pub fn headers<T: Into<Text>>(
        name: impl Into<Text>,
        [limit, remaining, reset]: [T; 3],
        unit: Unit,
    ) -> Self {
        Self::new(name)
            .limit(super::header(limit))
            .remaining(super::header(remaining))
            .reset(super::header(reset), unit)
    }

    /// The dimension is told of only in answers that look like this.
    #[must_use]
    pub fn when(mut self, test: Test) -> Self {
        self.when = Some(test);
        self
    }

    /// Where the units allowed in a window stand.
    #[must_use]
    pub fn limit(mut self, source: Source) -> Self {
        self.limit.push(source);
        self
    }

    /// Where the units left stand.
    #[must_use]
    pub fn remaining(mut self, source: Source) -> Self {
        self.remaining.push(source);
        self
    }

    /// Where the units used stand, for services that do not tell what is left.
    #[must_use]
    pub fn used(mut self, source: Source) -> Self {
        self.used.push(source);
        self
    }

    /// Where a rate in requests per second stands, for services that tell it
    /// instead of a limit and a window.
    #[must_use]
    pub fn rate(mut self, source: Source) -> Self {
        self.rate.push(source);
        self
    }

    /// Where it stands when there are more units.
    #[must_use]
    pub fn reset(mut self, source: Source, unit: Unit) -> Self {
        self.resets.push((source, unit));
        self
    }

    /// How long a window lasts, by the service's documentation.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Where it stands how long a window lasts.
    #[must_use]
    pub fn window_in(mut self, source: Source, unit: Unit) -> Self {
        self.windows.push((source, unit));
        self
    }

    /// Whether it looks into the body.
    pub(super) fn in_body(&self) -> bool {
        let amounts = [&self.limit, &self.remaining, &self.used, &self.rate];
        let spans = self.resets.iter().chain(&self.windows);
        let mut spans = spans.map(|(source, _)| source);
        amounts.into_iter().flatten().any(Source::in_body) || spans.any(Source::in_body)
    }

    /// Adds what `answer` tells to `dimensions`.
    pub(super) fn read(
        &self,
        answer: &Answer<'_>,
        clock: &ServerClock<'_>,
        dimensions: &mut Vec<Dimension>,
    ) {
        if self
            .when
            .as_ref()
            .is_some_and(|test| !test.holds(answer, &[]))
        {
            return;
        }
        let Some(prefix) = &self.each else {
            dimensions.extend(self.dimension(self.name.clone(), answer, clock));
            return;
        };
        for (name, value) in &answer.head.headers {
            if let (true, Ok(value)) = (name.as_str().starts_with(&**prefix), value.to_str()) {
                let answer = answer.holding(value);
                dimensions.extend(self.dimension(name.as_str().to_owned().into(), &answer, clock));
            }
        }
    }

    fn dimension(
        &self,
        name: Text,
        answer: &Answer<'_>,
        clock: &ServerClock<'_>,
    ) -> Option<Dimension> {
        let number = |sources: &[Source]| {
            let read = |source: &Source| source.find(answer, |text| Some(units(text.trim())));
            sources.iter().find_map(read)
        };
        let span = |sources: &[(Source, Unit)]| {
            let read = |(source, unit): &(Source, Unit)| {
                source.find(answer, |text| unit.read(text, clock))
            };
            sources.iter().find_map(read)
        };
        let reset = self.resets.iter().find_map(|(source, unit)| {
            let read = |text: &str| {
                let wait = unit.read(text, clock)?;
                let name = if self.each.is_some() {
                    name.clone()
                } else {
                    source.name()
                };
                Some(Hint::new(wait, name).raw(text.as_bytes()))
            };
            source.find(answer, read)
        });
        let limit = number(&self.limit).flatten();
        let used = number(&self.used).flatten();
        let remaining = match (number(&self.remaining), limit, used) {
            (Some(Some(left)), _, _) => Remaining::Units(left),
            (Some(None), _, _) => Remaining::Sentinel,
            (None, Some(limit), Some(used)) => Remaining::Units(limit.saturating_sub(used)),
            (None, _, _) => Remaining::Untold,
        };
        let rate = self.rate.iter().find_map(|source| {
            let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
            source.find(answer, |text| text.trim().parse().ok().filter(positive))
        });
        let (limit, window) = match rate {
            Some(rate) => (Some(1), Some(time::seconds(1.0 / rate))),
            None => (limit, span(&self.windows).or(self.window)),
        };
        let told = limit.is_some() || remaining != Remaining::Untold || reset.is_some();
        told.then_some(Dimension {
            name: Some(name),
            limit,
            remaining,
            reset,
            window,
            concurrent: false,
        })
    }
}
