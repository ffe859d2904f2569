//! The law that does not learn: a rate that somebody knows.

use crate::{
    law::{Attempt, Law, LawConfig, Rate},
    time::Instant,
};

/// Holds one rate, whatever the server says.
///
/// For a quota that is documented and yours alone. A throttle still pauses the
/// scope; the rate after the pause is the same. As its own settings, it is
/// awake from the first request on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed(Rate);

impl Fixed {
    /// Holds `per_second` requests a second, brought within what a [`Rate`]
    /// can be.
    pub const fn per_second(per_second: f64) -> Self {
        Self(Rate::per_second(per_second))
    }
}

impl Law for Fixed {
    fn on_attempt(&mut self, _: &Attempt) {}

    fn set_rate(&mut self, _: Instant, rate: Rate) {
        self.0 = rate;
    }

    fn rate(&mut self, _: Instant) -> Rate {
        self.0
    }
}

impl LawConfig for Fixed {
    fn start(&self) -> Option<Rate> {
        Some(self.0)
    }

    fn build(&self, _: Instant, rate: Rate) -> Box<dyn Law> {
        Box::new(Self(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{law::Ended, verdict::ThrottleKind};

    #[test]
    fn only_a_hand_changes_a_fixed_rate() {
        let config = Fixed::per_second(50.0);
        let mut law = config.build(Instant::ZERO, config.start().unwrap());
        law.on_attempt(&Attempt::new(
            Instant::ZERO,
            Instant::ZERO,
            Ended::Throttled {
                kind: ThrottleKind::RateLimited,
                asked: None,
            },
        ));
        assert_eq!(law.rate(Instant::ZERO).get(), 50.0);
        law.set_rate(Instant::ZERO, Rate::per_second(5.0));
        assert_eq!(law.rate(Instant::ZERO).get(), 5.0);
    }
}
