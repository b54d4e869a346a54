//! The kinds of placeholders, and who may be asked for each.

/// What a placeholder names. Everything else is unknown and fails its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A config value of the module.
    Config,
    /// A secret or a credential that the plan names.
    Secret,
    /// All items of a collection on this machine.
    Collected,
    /// The same under an old name: the collection `shell:…`.
    Shell,
    /// The same under an old name: the collection `environment:…`.
    Environment,
    /// The same under an old name: the collection `contribution:…`.
    Contribution,
    /// Everybody who is bound to a provision of this module, as a JSON list.
    Consumers,
    /// What a provider serves this module.
    Bound,
    /// Placement: a directory.
    Dir,
    /// Placement: how the module is reached.
    Access,
    /// Placement: a port.
    Port,
    /// Placement: who holds a seat.
    Seat,
    /// Placement: the machine.
    Machine,
}

impl Kind {
    /// All of them, in the order in which the registry is written.
    pub const ALL: [Self; 13] = [
        Self::Config,
        Self::Dir,
        Self::Access,
        Self::Port,
        Self::Seat,
        Self::Machine,
        Self::Secret,
        Self::Consumers,
        Self::Bound,
        Self::Collected,
        Self::Shell,
        Self::Environment,
        Self::Contribution,
    ];

    /// The placement kinds, whose values stand in the plan.
    pub const PLACEMENT: [Self; 5] = [Self::Dir, Self::Access, Self::Port, Self::Seat, Self::Machine];

    /// The word in a placeholder and in the registry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Secret => "secret",
            Self::Collected => "collected",
            Self::Shell => "shell",
            Self::Environment => "environment",
            Self::Contribution => "contribution",
            Self::Consumers => "consumers",
            Self::Bound => "bound",
            Self::Dir => "dir",
            Self::Access => "access",
            Self::Port => "port",
            Self::Seat => "seat",
            Self::Machine => "machine",
        }
    }

    /// The kind of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// True for the kinds whose values stand in the plan.
    pub fn is_placement(self) -> bool {
        Self::PLACEMENT.contains(&self)
    }

    /// The collection that a placeholder of this kind and name means, for the four kinds that mean one.
    pub fn collection(self, name: &str) -> Option<String> {
        match self {
            Self::Collected => Some(name.to_owned()),
            Self::Shell | Self::Environment | Self::Contribution => Some(format!("{}:{name}", self.as_str())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_word() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("foo"), None);
    }

    #[test]
    fn old_names_are_collections_of_the_same_full_name() {
        assert_eq!(Kind::Shell.collection("zsh:normal").as_deref(), Some("shell:zsh:normal"));
        assert_eq!(Kind::Environment.collection("posix").as_deref(), Some("environment:posix"));
        let trigger = Kind::Contribution.collection("node-hotkeys:trigger");
        assert_eq!(trigger.as_deref(), Some("contribution:node-hotkeys:trigger"));
        assert_eq!(Kind::Collected.collection("a:b").as_deref(), Some("a:b"));
        assert_eq!(Kind::Config.collection("a"), None);
    }
}
