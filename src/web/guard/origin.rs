//! Whether a request comes from a page of ours, by what the browser says about it. Plain code.

use std::net::IpAddr;

/// The host part of `Host` or of an origin, lower case, without port and brackets.
pub(in super::super) fn host_part(authority: &str) -> &str {
    let bracketed = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(host, _)| host);
    bracketed.unwrap_or_else(|| authority.split_once(':').map_or(authority, |(host, _)| host))
}

/// True when pages may be asked for under this `Host`: an address, `localhost` or one of the names of this listener. Any
/// other name could be one that a stranger's page made point here.
pub(in super::super) fn is_ours(host: &str, names: &[String]) -> bool {
    let host = host_part(host).trim_end_matches('.');
    host.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || names.iter().any(|name| host.eq_ignore_ascii_case(name))
}

/// What a browser says about where a form was sent from.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Sender<'a> {
    /// `Host`.
    pub host: &'a str,
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
}

impl Sender<'_> {
    /// True unless the browser says that another site sent it. Old and terminal browsers say nothing; the form's own
    /// token has to do for them.
    pub fn is_same_site(&self) -> bool {
        let site = self.fetch_site.is_none_or(|site| matches!(site, "same-origin" | "none"));
        let origin = self.origin.is_none_or(|origin| {
            // Behind a proxy that ends TLS the scheme differs; host and port are what tells sites apart.
            let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            authority.is_some_and(|authority| authority.eq_ignore_ascii_case(self.host))
        });
        site && origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_our_names_are_ours() {
        let names = ["prov1.example.net".to_owned()];
        for host in [
            "127.0.0.1:9090",
            "[::1]:9090",
            "localhost",
            "LOCALHOST:1",
            "Prov1.Example.net:9090",
            "prov1.example.net.",
        ] {
            assert!(is_ours(host, &names), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9090", "[::1", "prov1"]
        {
            assert!(!is_ours(host, &names), "{host}");
        }
    }

    fn check(origin: Option<&str>, fetch_site: Option<&str>, expected: bool) {
        let sender = Sender { host: "prov1:9090", origin, fetch_site };
        assert_eq!(sender.is_same_site(), expected, "{sender:?}");
    }

    #[test]
    fn a_form_from_another_site_is_told_apart() {
        check(None, None, true);
        check(Some("http://prov1:9090"), None, true);
        check(Some("https://PROV1:9090"), Some("same-origin"), true);
        check(None, Some("none"), true);
        check(Some("http://evil.example"), None, false);
        check(Some("http://prov1:9091"), None, false);
        check(Some("null"), None, false);
        check(Some("prov1:9090"), None, false);
        check(None, Some("cross-site"), false);
        check(None, Some("same-site"), false);
        check(Some("http://prov1:9090"), Some("cross-site"), false);
    }
}
