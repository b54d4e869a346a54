//! The list that `${consumers:…}` becomes.

use std::fmt;

use serde::Serialize;
use zeroize::Zeroizing;

use crate::json::to_secret_text;

/// One who is bound to a provision.
#[derive(Clone, Copy, Serialize)]
pub struct Consumer<'a> {
    /// Its machine.
    pub consumer: &'a str,
    /// Its module.
    pub module: &'a str,
    /// Which of several, empty when it has one.
    pub local: &'a str,
    /// The vault's name of the credential, empty when none is handed.
    pub credential: &'a str,
    /// The credential, empty when none is handed.
    pub value: &'a str,
}

impl fmt::Debug for Consumer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Consumer({}.{}/{}, [redacted])", self.consumer, self.module, self.local)
    }
}

/// The list as compact JSON without a line feed.
pub fn encode_list(consumers: &[Consumer<'_>]) -> Zeroizing<String> {
    to_secret_text(consumers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_compact_and_in_the_order_given() {
        let credential = "pair/postgres/postgres/web1/forge/main";
        let one = Consumer { consumer: "web1", module: "forge", local: "main", credential, value: "k\"q" };
        let none = Consumer { consumer: "web2", module: "blog", local: "", credential: "", value: "" };
        assert_eq!(
            *encode_list(&[one, none]),
            r#"[{"consumer":"web1","module":"forge","local":"main","credential":"pair/postgres/postgres/web1/forge/main","value":"k\"q"},{"consumer":"web2","module":"blog","local":"","credential":"","value":""}]"#
        );
        assert_eq!(*encode_list(&[]), "[]");
        assert!(!format!("{one:?}").contains("k\"q"));
    }
}
