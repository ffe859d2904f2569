//! Servers and callers in virtual time.

use super::*;

/// A server in virtual time, and when it was last sent something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) kind: Kind,
    pub(super) at: f64,
    pub(super) left: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bucket { quota: f64, depth: f64 },
    Window { limit: f64, secs: f64 },
}

impl Server {
    pub(super) fn bucket(quota: f64, depth: f64) -> Self {
        let kind = Kind::Bucket { quota, depth };
        let (at, left) = (0.0, depth);
        Self { kind, at, left }
    }

    pub(super) fn window(limit: f64, secs: f64) -> Self {
        let kind = Kind::Window { limit, secs };
        let (at, left) = (0.0, limit);
        Self { kind, at, left }
    }

    /// The wait that a refusal names, if it refuses.
    pub(super) fn send(&mut self, now: f64) -> Result<(), f64> {
        let wait = match self.kind {
            Kind::Bucket { quota, depth } => {
                self.left = (self.left + quota * (now - self.at)).min(depth);
                (1.0 - self.left) / quota
            }
            Kind::Window { limit, secs } => {
                let began = (now / secs).floor() * secs;
                if self.at < began {
                    self.left = limit;
                }
                began + secs - now
            }
        };
        self.at = now;
        if self.left < 1.0 {
            return Err(wait.ceil());
        }
        self.left -= 1.0;
        Ok(())
    }
}

/// Callers that always wait, a gate that obeys, one answer at a time.
pub(super) struct World {
    pub(super) law: Box<dyn Law>,
    pub(super) server: Server,
    pub(super) now: f64,
    pub(super) sent: f64,
    pub(super) refused: f64,
    pub(super) accepted: f64,
}

impl World {
    pub(super) fn new(server: Server, measured: f64) -> Self {
        let law = Learned::new().build(at(0.0), Rate::per_second(measured));
        Self {
            law,
            server,
            now: 0.0,
            sent: 0.0,
            refused: 0.0,
            accepted: 0.0,
        }
    }

    pub(super) fn run(&mut self, secs: f64) {
        let end = self.now + secs;
        (self.sent, self.refused, self.accepted) = (0.0, 0.0, 0.0);
        while self.now < end {
            self.now += 1.0 / self.law.rate(at(self.now)).get();
            self.send();
        }
    }

    pub(super) fn send(&mut self) {
        self.sent += 1.0;
        let Err(wait) = self.server.send(self.now) else {
            self.accepted += 1.0;
            self.law.on_attempt(&attempt(at(self.now), Ended::Accepted));
            return;
        };
        self.refused += 1.0;
        self.law
            .on_attempt(&attempt(at(self.now), refused(Some(wait))));
        let opens = self.now + wait.max(1.0);
        self.law.on_pause(at(self.now), at(opens));
        self.now = opens;
        self.law.on_resume(at(opens));
    }

    pub(super) fn rate(&mut self) -> f64 {
        self.law.rate(at(self.now)).get()
    }
}
