//! The command line.

use std::{fmt, str::FromStr, time::Duration};

use clap::{Parser, value_parser};
use hyper::Uri;
use tokio::time::Instant;

use crate::{callers::Load, server::Quota};

/// Lets many callers loose on a server with a quota, in three ways.
#[derive(Parser)]
#[command(name = "storm")]
pub(crate) struct Args {
    /// Concurrent callers; each makes its next call when the last is answered
    // Two sockets each, client's and server's, and 1024 is a common limit.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = value_parser!(u32).range(1..=400))]
    callers: u32,

    /// Calls to make in each way, by all callers together
    #[arg(long, value_name = "N", default_value_t = 320, value_parser = value_parser!(u32).range(1..=1_000_000))]
    calls: u32,

    /// Requests per second that the server accepts
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) quota: u32,

    /// Requests that it accepts at once after a rest [default: the quota]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    burst: Option<u32>,

    /// What a refusal says: "true" (the wait until it would accept, rounded up
    /// to seconds), "none" (no header), or always this number of seconds
    #[arg(long, value_name = "true|none|SECONDS", default_value = "true")]
    retry_after: RetryAfter,
}

impl Args {
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            per_second: self.quota,
            burst: self.burst(),
            retry_after: self.retry_after,
        }
    }

    pub(crate) fn load(&self, uri: Uri) -> Load {
        Load {
            uri,
            callers: self.callers as usize,
            calls: self.calls as usize,
            until: Instant::now() + self.patience(),
        }
    }

    /// How long one way may take: a minute and three times what the quota asks.
    fn patience(&self) -> Duration {
        Duration::from_secs(60) + 3 * Duration::from_secs((self.calls / self.quota).into())
    }

    fn burst(&self) -> u32 {
        self.burst.unwrap_or(self.quota)
    }
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} callers make {} calls; the server accepts {}/s, {} at once, and says Retry-After: {}",
            self.callers,
            self.calls,
            self.quota,
            self.burst(),
            self.retry_after,
        )
    }
}

/// What the server's `Retry-After` says.
#[derive(Clone, Copy)]
pub(crate) enum RetryAfter {
    /// The time until it would accept, rounded up.
    True,
    /// There is none.
    None,
    /// Always the same, whatever the truth.
    Always(u32),
}

impl RetryAfter {
    /// The header's value if the truth is `wait`.
    pub(crate) fn header(self, wait: Duration) -> Option<u64> {
        match self {
            Self::True => Some(wait.as_secs_f64().ceil() as u64),
            Self::None => None,
            Self::Always(seconds) => Some(seconds.into()),
        }
    }
}

impl FromStr for RetryAfter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" => Ok(Self::True),
            "none" => Ok(Self::None),
            _ => text
                .parse()
                .map(Self::Always)
                .map_err(|_| "neither \"true\" nor \"none\" nor a number of whole seconds"),
        }
    }
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => f.write_str("the true wait"),
            Self::None => f.write_str("nothing"),
            Self::Always(seconds) => write!(f, "{seconds}"),
        }
    }
}
