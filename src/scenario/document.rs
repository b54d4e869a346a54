//! What a file of steps says, before anything of it is looked up or worked out.

use std::collections::BTreeMap;
use std::time::Duration;

use quartermaster_actors::expression::{Expression, Reference};
use quartermaster_actors::steps::Retry;
use quartermaster_proto::provider::Type;

/// Attributes by name, with the line each stands on.
pub type Attrs = BTreeMap<String, Expression>;

/// One scenario of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// What it is for, if it says.
    pub description: Option<String>,
    /// The providers it needs, by the name it gives them.
    pub providers: BTreeMap<String, Provider>,
    /// What has to be given, by name.
    pub variables: BTreeMap<String, Variable>,
    /// What is to be done, in the order written, which means nothing.
    pub actions: Vec<Action>,
    /// What is told at the end, in the order written.
    pub outputs: Vec<Output>,
}

/// A provider: its entry in `required_providers`, and its `provider` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// The line of its entry.
    pub line: usize,
    /// The entry: `source` and settings of ours.
    pub settings: Attrs,
    /// What `configure` hands it; empty without a block.
    pub config: Attrs,
    /// The line of its block, or of its entry when it has none.
    pub config_line: usize,
}

/// A value that is given from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its line.
    pub line: usize,
    /// Its type; `any` if it says none.
    pub ty: Type,
    /// What it is when it is not given.
    pub default: Option<Expression>,
    /// What it means, if it says.
    pub description: Option<String>,
    /// It is not shown and not recorded.
    pub sensitive: bool,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its line.
    pub line: usize,
    /// What the provider calls it.
    pub kind: String,
    /// Its own name.
    pub name: String,
    /// The provider that is to do it, where several could.
    pub provider: Option<(usize, String)>,
    /// What comes before it besides that to which it refers.
    pub depends_on: Vec<Reference>,
    /// Its attributes.
    pub attrs: Attrs,
    /// What takes it back, instead of what the provider answers.
    pub teardown: Option<Teardown>,
    /// Its limit, instead of the provider's.
    pub timeout: Option<Duration>,
    /// How often it is tried while the provider says that nothing was done.
    pub attempts: u32,
    /// How these tries follow one another.
    pub retry: Retry,
}

/// A declared undo: an action of the same provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Teardown {
    /// Its line.
    pub line: usize,
    /// The action; the same as the one it undoes if it says none.
    pub action: Option<String>,
    /// Its attributes, which may refer to the outputs of the action as `self`.
    pub attrs: Attrs,
}

/// Something told at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Its line.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: Expression,
    /// It is not shown and not recorded.
    pub sensitive: bool,
}

impl Action {
    /// What it is called everywhere but in the file: `record_create.www`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }
}
