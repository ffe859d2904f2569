//! The hosts that a profile is for.

use hashbrown::HashMap;
use http::Uri;

use super::source::Text;

/// A host, or with `*.` in front all below it.
#[derive(Clone, Debug)]
pub(super) struct Host {
    name: Text,
    below: bool,
}

impl Host {
    pub(super) fn new(host: Text) -> Self {
        let below = host.starts_with("*.");
        let name = match host {
            Text::Borrowed(host) if !host.bytes().any(|b| b.is_ascii_uppercase()) => {
                host.strip_prefix("*.").unwrap_or(host).into()
            }
            host => {
                let name = host.strip_prefix("*.").unwrap_or(&host);
                name.to_ascii_lowercase().into()
            }
        };
        Self { name, below }
    }

    pub(super) fn matches(&self, uri: &Uri) -> bool {
        let Some(host) = uri.host() else {
            return false;
        };
        if !self.below {
            return host.eq_ignore_ascii_case(&self.name);
        }
        let Some(dot) = host.len().checked_sub(self.name.len() + 1) else {
            return false;
        };
        host.as_bytes().get(dot) == Some(&b'.')
            && host
                .get(dot + 1..)
                .is_some_and(|end| end.eq_ignore_ascii_case(&self.name))
    }
}

/// Finds by host, in a few look-ups however many hosts there are.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    exact: HashMap<Text, usize>,
    below: HashMap<Text, usize>,
}

impl Hosts {
    pub(super) fn insert(&mut self, host: &Host, index: usize) {
        let map = if host.below {
            &mut self.below
        } else {
            &mut self.exact
        };
        map.insert(host.name.clone(), index);
    }

    /// What was inserted for `uri`: for its host, else for the nearest one that
    /// it lies below.
    pub(super) fn find(&self, uri: &Uri) -> Option<usize> {
        let host = uri.host()?;
        let host: Text = match host.bytes().any(|b| b.is_ascii_uppercase()) {
            true => host.to_ascii_lowercase().into(),
            false => return self.find_lower(host),
        };
        self.find_lower(&host)
    }

    fn find_lower(&self, host: &str) -> Option<usize> {
        let parents = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
        let exact = self.exact.get(host);
        exact
            .or_else(|| parents.filter_map(|parent| self.below.get(parent)).next())
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(host: &str) -> Uri {
        format!("https://{host}/x").parse().unwrap()
    }

    #[test]
    fn a_host_matches_itself_and_a_star_all_below() {
        let exact = Host::new("API.acme.test".into());
        let below = Host::new("*.acme.test".into());
        for (host, is_exact, is_below) in [
            ("api.acme.test", true, true),
            ("Api.Acme.Test:8443", true, true),
            ("a.b.acme.test", false, true),
            ("acme.test", false, false),
            ("evilacme.test", false, false),
            ("api.acme.test.evil.test", false, false),
        ] {
            assert_eq!(exact.matches(&uri(host)), is_exact, "{host}");
            assert_eq!(below.matches(&uri(host)), is_below, "{host}");
        }
        assert!(!below.matches(&"/path".parse().unwrap()));
    }

    #[test]
    fn the_nearest_entry_is_found() {
        let mut hosts = Hosts::default();
        for (index, host) in ["*.acme.test", "api.acme.test", "*.eu.acme.test"]
            .iter()
            .enumerate()
        {
            hosts.insert(&Host::new((*host).into()), index);
        }
        for (host, index) in [
            ("api.acme.test", Some(1)),
            ("API.acme.test", Some(1)),
            ("www.acme.test", Some(0)),
            ("a.eu.acme.test", Some(2)),
            ("acme.test", None),
            ("other.test", None),
        ] {
            assert_eq!(hosts.find(&uri(host)), index, "{host}");
        }
    }
}
