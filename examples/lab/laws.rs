//! The laws that are set side by side.

use clap::ValueEnum;
use tower_retry_after::{
    Policy,
    law::{Aimd, Fixed, Learned},
};

use crate::aws_cubic::AwsCubic;

/// One of the laws, or the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rival {
    /// The crate's default.
    Learned,
    /// Halves at a throttle, climbs by a twentieth a minute.
    Aimd,
    /// The law of the AWS SDKs.
    AwsCubic,
    /// Told the true quota.
    Fixed,
    /// Told twice the true quota.
    FixedTwice,
    /// Knows the server: the 100 %.
    Oracle,
}

impl Rival {
    /// `policy`, with this law and told the quota per second if it is one that
    /// does not learn.
    pub(crate) fn choose(self, policy: Policy, quota: f64) -> Policy {
        match self {
            Self::Learned | Self::Oracle => policy.law(Learned::new()),
            Self::Aimd => policy.law(Aimd::measured()),
            Self::AwsCubic => policy.law(AwsCubic),
            Self::Fixed => policy.law(Fixed::per_second(quota)),
            Self::FixedTwice => policy.law(Fixed::per_second(2.0 * quota)),
        }
    }

    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().into())
    }
}
