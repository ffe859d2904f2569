//! How far a scope's hints are believed.
//!
//! A header that says 0 makes a hot loop of an obedient client, and one that
//! says 3600 for a window of twenty seconds stalls it for an hour; a truthful
//! one must be obeyed to the letter. Which of them a server sends is not
//! guessed but measured, once an episode, and as often as it takes.
//!
//! # What is measured
//!
//! An *episode* begins with a refusal, which asks for a wait, and ends with the
//! first attempt sent after it that is served. Between the last send that was
//! refused and the one that was served lies the measured recovery:
//!
//! ```text
//!   refused             refused      served
//!   ──┼────────────────────┼────────────┼──────────▶ time
//!     │                    ╰────────────╯
//!     │                  the server recovered here
//!     ╰──────── asked ─────────▶
//! ```
//!
//! The hint was *kept* if that interval meets half to twice of what was asked.
//! A burst of refusals is one episode. What proves nothing is dropped: an
//! episode that ended late because nobody was waiting, one during which the
//! machine was suspended.
//!
//! # What follows from it
//!
//! The last observations give each source of hints a [`Category`], by majority:
//!
//! | category | most of the observations say | its hints are |
//! | --- | --- | --- |
//! | [`Unknown`] | nothing yet | obeyed, and a probe goes first |
//! | [`Truthful`] | the hint was kept | obeyed, also below `min_pause` |
//! | [`AlwaysZero`] | it was zero | replaced by own backoff, then by what was learned |
//! | [`Absent`] | there was none | the same |
//! | [`ConstantOverstated`] | it was one value, and it was served in less than half of it | cut to what was learned |
//! | [`Unreliable`] | none of these | obeyed, but for no less than own backoff |
//!
//! [`sanitise()`] turns hint and category into a wait; its docs have the rules
//! in full. Nothing is pinned: the category is computed anew whenever it is
//! asked for, and a server that changes is found out within a few episodes,
//! whichever way. A hint that was obeyed and refused all the same is not
//! believed again before its episode has ended.
//!
//! [`Unknown`]: Category::Unknown
//! [`Truthful`]: Category::Truthful
//! [`AlwaysZero`]: Category::AlwaysZero
//! [`Absent`]: Category::Absent
//! [`ConstantOverstated`]: Category::ConstantOverstated
//! [`Unreliable`]: Category::Unreliable
//!
//! # How an overstated hint is found out
//!
//! One cannot learn that a header overstates by obeying it. A pause that is too
//! long to wait out is probed before its end ([`Trust::early_probe`]), first
//! after `max_pause` and after twice the time whenever that was refused. Once
//! such a probe was served, the next episode is probed at half that time, and
//! so the time that the server really takes is closed in on.
//!
//! A probe that is refused costs something too, and where bans are lengthened
//! for repeat offenders it costs much. So a scope whose long hints were
//! confirmed (by a refusal late in the wait) is probed again in about every
//! twelfth long pause only; and one that named a *later* instant when it was
//! probed, twice in an episode, is not probed for a day, unless its hints are
//! known to mean nothing.
//!
//! What is overstated but shorter than `max_pause` is obeyed, knowingly: a hint
//! of 60 s for a window of 20 s costs the other 40 in every episode.
//!
//! # Constants
//!
//! | what | value | why |
//! | --- | --- | --- |
//! | observations kept | 20, at most 24 h old | 20 bytes each; a server is judged by what it does today |
//! | that decide | the newest 5 of a source | one outlier in five changes nothing, three do |
//! | a category needs | 3, and 2 in a row to change | two can agree by chance |
//! | kept is | half to twice of what was asked | hints are rounded up to seconds, windows to minutes |
//! | a ceiling is learned | from what was served before 90 % of it | rounding alone makes a short hint a little too long |
//! | one value is | within a factor of 1.25 | a date is a second off, a countdown moves a little |
//! | a bracket is narrow | at a sixteenth of its end | closer would cost a refusal for a second |
//! | a quicker server is looked for | every 16 episodes | a refusal in sixteen is within the noise |
//! | the machine was suspended | 5 s between the clocks | more than a time server corrects at once |
//!
//! # Where it comes from
//!
//! `Retry-After` is how long a client *ought to* wait (RFC 9110, section
//! 10.2.3), so a wait is shortened only against proof. That a date is read
//! against the answer's own `Date` follows from section 6.6.1 there: both are
//! by one clock, and the [skew](TrustSnapshot::clock_skew) is told. That a new
//! attempt is a probe, sent alone, is the half-open state of the circuit breaker
//! (Nygard, *Release It!*, 2007); the search for the ceiling is bisection.
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use tower_retry_after::{
//!     time::Instant,
//!     trust::{Bounds, Category, Reading, Reason, Sent, Trust},
//!     verdict::Hint,
//! };
//!
//! let at = |secs| Reading {
//!     now: Instant::ZERO + Duration::from_secs(secs),
//!     wall: SystemTime::UNIX_EPOCH + Duration::from_secs(secs),
//! };
//! let sent = |secs| Sent { at: at(secs).now, waited: true };
//! let hour = Hint::new(Duration::from_secs(3600), "retry-after");
//!
//! // It asks for an hour and serves after half a minute, again and again.
//! let mut trust = Trust::new();
//! for minute in [0, 60, 120] {
//!     trust.on_throttle(at(minute + 1), sent(minute), Some(&hour), Some(429));
//!     trust.on_accepted(at(minute + 31), sent(minute + 31));
//! }
//! assert_eq!(trust.category(at(180).now), Category::ConstantOverstated);
//!
//! trust.on_throttle(at(181), sent(180), Some(&hour), Some(429));
//! let own = Duration::from_secs(1);
//! let decision = trust.sanitise(at(181).now, Some(&hour), own, &Bounds::default());
//! assert_eq!(decision.reason, Reason::CutToCeiling);
//! assert_eq!(decision.wait, Duration::from_secs(15), "half of what it takes");
//! ```

mod episode;
mod observation;
mod reading;
mod record;
mod recovery;
mod sanitise;

use std::time::Duration;

use self::record::Record;
pub use self::{
    episode::{Observed, Sent},
    observation::Category,
    reading::Reading,
    record::TrustSnapshot,
    sanitise::{Bounds, Decision, Reason, sanitise},
};
use crate::{time::Instant, verdict::Hint};

/// What was learned of one scope's hints.
///
/// Pure: the clocks come in as arguments. One word until the first refusal,
/// then at most about 600 bytes, and 200 more while an episode runs, whatever the
/// server sends. Events come in order of `now`, and those of stale attempts not
/// at all.
#[derive(Clone, Debug, Default)]
pub struct Trust(Option<Box<Record>>);

impl Trust {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Learns from a refusal: an episode begins, or goes on.
    ///
    /// `status` is that of the answer, and is told with what is observed.
    pub fn on_throttle(
        &mut self,
        at: Reading,
        sent: Sent,
        hint: Option<&Hint>,
        status: Option<u16>,
    ) {
        let record = self.0.get_or_insert_default();
        record.throttle(at, sent, hint, status);
    }

    /// Learns from an attempt that was served: it may end an episode.
    ///
    /// Gives what that showed; `None` if no episode ended, or if it ended in a
    /// way that shows nothing.
    pub fn on_accepted(&mut self, at: Reading, sent: Sent) -> Option<Observed> {
        self.0.as_deref_mut()?.accept(at, sent)
    }

    /// Whether an episode is running: only then is there anything to learn
    /// from an attempt that is served.
    pub fn is_observing(&self) -> bool {
        self.0.as_ref().is_some_and(|record| record.is_observing())
    }

    /// Decides how long to wait after a refusal, which
    /// [`on_throttle`](Self::on_throttle) knows of already.
    ///
    /// `backoff` is the scope's own. The rules are those of the function
    /// [`sanitise()`]; a hint that was refused within this episode although it
    /// had been obeyed is unreliable until it ends.
    pub fn sanitise(
        &self,
        now: Instant,
        hint: Option<&Hint>,
        backoff: Duration,
        bounds: &Bounds,
    ) -> Decision {
        let asked = hint.map(Hint::wait);
        let (category, learned) = match self.0.as_deref() {
            Some(record) => record.belief(now, hint, bounds),
            None => (Category::Unknown, None),
        };
        sanitise(asked, category, learned, backoff, bounds)
    }

    /// The earliest probe of a pause from `began` until `until`, as of `now`;
    /// `None` if nothing may go out before its end.
    ///
    /// A pause that is waited out has none. Never ask for a ban, which a probe
    /// might lengthen. Before `now + backoff` there is none either.
    pub fn early_probe(&self, pause: &LongPause, now: Instant, bounds: &Bounds) -> Option<Instant> {
        if pause.until - now <= bounds.max_pause {
            return None;
        }
        let record = self.0.as_deref();
        if record.is_some_and(|record| record.spares(now)) {
            return None;
        }
        let elapsed = now - pause.began;
        let step = record
            .and_then(|record| record.ceiling_beyond(now, elapsed))
            .unwrap_or_else(|| doubled_beyond(bounds.max_pause.max(bounds.min_pause), elapsed));
        let at = (pause.began + step).max(now + pause.backoff.max(bounds.min_pause));
        Some(at).filter(|at| *at < pause.until)
    }

    /// How far the newest source of hints is believed.
    pub fn category(&self, now: Instant) -> Category {
        self.snapshot(now).category
    }

    /// What is known, as plain data.
    pub fn snapshot(&self, now: Instant) -> TrustSnapshot {
        let record = self.0.as_deref();
        record.map_or_else(TrustSnapshot::default, |record| record.snapshot(now))
    }
}

/// A pause that may be too long to wait out.
#[derive(Clone, Copy, Debug)]
pub struct LongPause {
    /// When its episode began.
    pub began: Instant,
    /// The instant that the server asked for.
    pub until: Instant,
    /// The own backoff as of now.
    pub backoff: Duration,
}

/// The first of `step · 2^k` that is longer than `elapsed`.
fn doubled_beyond(step: Duration, elapsed: Duration) -> Duration {
    let mut step = step.max(Duration::from_nanos(1));
    while step <= elapsed && step < Duration::MAX {
        step = step.saturating_mul(2);
    }
    step
}
