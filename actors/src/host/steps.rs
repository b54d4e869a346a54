//! The provisioning cycle as one table: every step with its tries, what it needs and whether it changes the host
//! (choria.md 12.3).

/// Which parts of the cycle a site uses (`features` of the configuration).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Fetch a CSR and check it.
    pub pki: bool,
    /// Fetch and verify the host's provisioning token.
    pub jwt: bool,
    /// Let the host make an Ed25519 key and issue a server token for it.
    pub ed25519: bool,
    /// Update the host's software when the helper asks for it.
    pub upgrades: bool,
    /// Let providers do something before and after it is configured.
    pub steps: bool,
}

/// One step of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Fetch the provisioning token and a fresh ECDH key, verify the token.
    Jwt,
    /// Let the host make a key pair and prove that it holds it.
    Gen25519,
    /// Fetch facts and version.
    Inventory,
    /// Fetch a CSR and judge it.
    Gencsr,
    /// Ask the site's helper for a decision.
    Helper,
    /// Stop the host, because the helper said so.
    Shutdown,
    /// Issue the server token.
    ServerToken,
    /// Encrypt the private key the helper returned.
    SealKey,
    /// Update the host's software.
    Update,
    /// Let providers do their steps before it is configured.
    Before,
    /// Hand the host its configuration.
    Configure,
    /// Let providers do their steps after that.
    After,
    /// Restart it into its new life.
    Restart,
    /// Take back what providers did; in no cycle that succeeds.
    TakeBack,
}

/// What the table says of one step.
#[derive(Debug, Clone, Copy)]
pub struct StepSpec {
    /// The step.
    pub step: Step,
    /// The remote agent and action, for steps that are a call to the host. The call's deadline belongs to the agent
    /// (choria.md 12.4) and is kept by the link.
    pub call: Option<(&'static str, &'static str)>,
    /// How often a call is tried.
    pub tries: u32,
    /// Whether the step leaves the host changed: from the first such step on, a cycle is not interrupted.
    pub effect: bool,
    /// Whether the cycle with these features has this step at all; steps that depend on the helper's decision say yes.
    pub wanted: fn(Features) -> bool,
}

const fn always(_: Features) -> bool {
    true
}

/// Every step in its order.
pub const STEPS: [StepSpec; 13] = [
    StepSpec {
        step: Step::Jwt,
        call: Some(("choria_provision", "jwt")),
        tries: 3,
        effect: false,
        wanted: |f| f.jwt,
    },
    StepSpec {
        step: Step::Gen25519,
        call: Some(("choria_provision", "gen25519")),
        tries: 5,
        effect: false,
        wanted: |f| f.ed25519,
    },
    StepSpec {
        step: Step::Inventory,
        call: Some(("rpcutil", "inventory")),
        tries: 5,
        effect: false,
        wanted: always,
    },
    StepSpec {
        step: Step::Gencsr,
        call: Some(("choria_provision", "gencsr")),
        tries: 1,
        effect: false,
        wanted: |f| f.pki,
    },
    StepSpec { step: Step::Helper, call: None, tries: 1, effect: false, wanted: always },
    StepSpec {
        step: Step::Shutdown,
        call: Some(("choria_provision", "shutdown")),
        tries: 3,
        effect: true,
        wanted: always,
    },
    StepSpec { step: Step::ServerToken, call: None, tries: 1, effect: false, wanted: |f| f.ed25519 },
    StepSpec { step: Step::SealKey, call: None, tries: 1, effect: false, wanted: always },
    StepSpec {
        step: Step::Update,
        call: Some(("choria_provision", "release_update")),
        tries: 3,
        effect: true,
        wanted: |f| f.upgrades,
    },
    StepSpec { step: Step::Before, call: None, tries: 1, effect: true, wanted: |f| f.steps },
    StepSpec {
        step: Step::Configure,
        call: Some(("choria_provision", "configure")),
        tries: 5,
        effect: true,
        wanted: always,
    },
    StepSpec { step: Step::After, call: None, tries: 1, effect: true, wanted: |f| f.steps },
    StepSpec {
        step: Step::Restart,
        call: Some(("choria_provision", "restart")),
        tries: 3,
        effect: true,
        wanted: always,
    },
];

impl Step {
    /// The table's row of this step.
    pub fn spec(self) -> Option<&'static StepSpec> {
        STEPS.iter().find(|spec| spec.step == self)
    }

    /// The step's name in logs and as the fixed cause of a failure.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::Gen25519 => "gen25519",
            Self::Inventory => "inventory",
            Self::Gencsr => "gencsr",
            Self::Helper => "helper",
            Self::Shutdown => "shutdown",
            Self::ServerToken => "server_token",
            Self::SealKey => "seal_key",
            Self::Update => "update",
            Self::Before => "steps_before",
            Self::Configure => "configure",
            Self::After => "steps_after",
            Self::Restart => "restart",
            Self::TakeBack => "take_back",
        }
    }
}
