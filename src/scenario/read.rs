//! HCL text to a scenario. What is not supported is refused by its name and line.

use hcl::edit::structure::{Attribute, Block, BlockLabel, Body, Structure};
use quartermaster_actors::expression::{Expression, Lines};
use quartermaster_proto::provider::{Type, Value, is_name};

use super::document::{Attrs, Output, Provider, Scenario, Variable};
use super::fault::Faults;
use super::read_action::action;

/// Reads the scenario of this name, or the only one of the file.
///
/// # Errors
/// Everything that is wrong, with its line.
pub fn read(text: &str, name: Option<&str>) -> Result<Scenario, Faults> {
    let mut faults = Faults::default();
    let lines = Lines::new(text);
    let body = match text.parse::<Body>() {
        Ok(body) => body,
        Err(error) => {
            let line = error.location().line();
            let hint = if has_long_number(text, line) {
                ". A whole number of more than 19 digits is written in quotes"
            } else {
                ""
            };
            faults.error(line, format!("this is no HCL: {}{hint}", error.message()));
            return Err(faults);
        }
    };
    let mut found = Vec::new();
    for structure in &body {
        match structure {
            Structure::Block(block) if block.has_ident("scenario") => found.push(block),
            Structure::Block(block) => {
                let what = block.ident.value();
                faults.error(
                    lines.of(block),
                    format!("the block `{what}` is not supported outside of a scenario"),
                );
            }
            Structure::Attribute(attribute) => {
                let what = attribute.key.value();
                faults.error(lines.of(attribute), format!("the attribute `{what}` is not supported here"));
            }
        }
    }
    let block = choose(&found, name, &lines, &mut faults);
    let scenario = block.and_then(|block| {
        let reader = Reader { text, lines: &lines };
        reader.scenario(block, &mut faults)
    });
    match scenario {
        Some(scenario) if faults.is_right() => Ok(scenario),
        _ => Err(faults),
    }
}

/// The reader of HCL knows no whole numbers beyond 64 bits.
fn has_long_number(text: &str, line: usize) -> bool {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    line.split(|character: char| !character.is_ascii_digit()).any(|digits| digits.len() > 19)
}

fn choose<'b>(
    found: &[&'b Block],
    name: Option<&str>,
    lines: &Lines,
    faults: &mut Faults,
) -> Option<&'b Block> {
    let label =
        |block: &Block| block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default();
    let names: Vec<String> = found.iter().map(|block| label(block)).collect();
    match (found, name) {
        ([], _) => faults.error(1, "the file has no `scenario` block"),
        ([one], None) => return Some(one),
        ([_, second, ..], None) => {
            let what =
                format!("the file has several scenarios ({}): choose one with --scenario", names.join(", "));
            faults.error(lines.of(*second), what);
        }
        (_, Some(name)) => {
            let mut those = found.iter().filter(|block| label(block) == name);
            match (those.next(), those.next()) {
                (Some(one), None) => return Some(one),
                (Some(_), Some(second)) => {
                    faults.error(lines.of(*second), format!("a second scenario is called `{name}`"));
                }
                _ => {
                    faults
                        .error(1, format!("the file has no scenario `{name}`; it has {}", names.join(", ")));
                }
            }
        }
    }
    None
}

/// Knows the text that is read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    text: &'t str,
    pub lines: &'t Lines,
}

impl Reader<'_> {
    fn scenario(self, block: &Block, faults: &mut Faults) -> Option<Scenario> {
        let name = self.one_label(block, faults)?;
        let mut scenario = Scenario {
            name,
            line: self.lines.of(block),
            description: None,
            providers: std::collections::BTreeMap::new(),
            variables: std::collections::BTreeMap::new(),
            actions: Vec::new(),
            outputs: Vec::new(),
        };
        // Whatever the order in the file, blocks about a provider come after the list of all.
        for block in block.body.get_blocks("required_providers") {
            self.required(block, &mut scenario, faults);
        }
        for structure in &block.body {
            match structure {
                Structure::Attribute(attribute) => self.about_scenario(attribute, &mut scenario, faults),
                Structure::Block(block) => self.part(block, &mut scenario, faults),
            }
        }
        Some(scenario)
    }

    fn about_scenario(self, attribute: &Attribute, scenario: &mut Scenario, faults: &mut Faults) {
        match attribute.key.value().as_str() {
            "description" => scenario.description = self.literal_text(attribute, faults),
            // Marks for people who list scenarios; nothing depends on them.
            "tags" => {
                self.expression(attribute, faults);
            }
            other => {
                faults.error(self.lines.of(attribute), format!("a scenario has no attribute `{other}`"));
            }
        }
    }

    fn part(self, block: &Block, scenario: &mut Scenario, faults: &mut Faults) {
        match block.ident.value().as_str() {
            "required_providers" => {}
            "variable" => self.variable(block, scenario, faults),
            "provider" => self.provider(block, scenario, faults),
            "action" => {
                if let Some(action) = action(self, block, faults) {
                    let id = action.id();
                    if scenario.actions.iter().any(|other| other.id() == id) {
                        faults.error(action.line, format!("a second action is called `{id}`"));
                    } else {
                        scenario.actions.push(action);
                    }
                }
            }
            "output" => self.output(block, scenario, faults),
            other => faults.error(self.lines.of(block), format!("the block `{other}` is not supported")),
        }
    }

    fn required(self, block: &Block, scenario: &mut Scenario, faults: &mut Faults) {
        self.no_labels(block, faults);
        for attribute in self.attributes(&block.body, &[], faults) {
            let (line, name) = (self.lines.of(attribute), attribute.key.value().as_str().to_owned());
            let hcl::edit::expr::Expression::Object(object) = &attribute.value else {
                faults.error(line, format!("the provider `{name}` needs {{ source = \"exec:PATH\" }}"));
                continue;
            };
            let mut settings = Attrs::new();
            for (key, value) in object {
                let key = match key {
                    hcl::edit::expr::ObjectKey::Ident(key) => key.value().as_str().to_owned(),
                    hcl::edit::expr::ObjectKey::Expression(hcl::edit::expr::Expression::String(key)) => {
                        key.value().clone()
                    }
                    hcl::edit::expr::ObjectKey::Expression(_) => {
                        faults.error(line, "a setting's name is a plain word");
                        continue;
                    }
                };
                match Expression::read(value.expr(), self.lines) {
                    Ok(value) => {
                        settings.insert(key, value);
                    }
                    Err(error) => faults.expression(error),
                }
            }
            let provider = Provider { line, settings, config: Attrs::new(), config_line: line };
            if scenario.providers.insert(name.clone(), provider).is_some() {
                faults.error(line, format!("the provider `{name}` is required twice"));
            }
        }
    }

    fn provider(self, block: &Block, scenario: &mut Scenario, faults: &mut Faults) {
        let Some(name) = self.one_label(block, faults) else { return };
        let line = self.lines.of(block);
        let config = self.attrs(&block.body, &[], faults);
        match scenario.providers.get_mut(&name) {
            None => faults.error(line, format!("the provider `{name}` is not in `required_providers`")),
            Some(provider) if provider.config_line != provider.line => {
                faults.error(line, format!("the provider `{name}` is configured twice"));
            }
            Some(provider) => {
                provider.config = config;
                provider.config_line = line;
            }
        }
    }

    fn variable(self, block: &Block, scenario: &mut Scenario, faults: &mut Faults) {
        let Some(name) = self.one_label(block, faults) else { return };
        let line = self.lines.of(block);
        let mut variable =
            Variable { line, ty: Type::Any, default: None, description: None, sensitive: false };
        for attribute in self.attributes(&block.body, &[], faults) {
            match attribute.key.value().as_str() {
                "type" => variable.ty = self.ty(attribute, faults).unwrap_or(Type::Any),
                "default" => variable.default = self.expression(attribute, faults),
                "description" => variable.description = self.literal_text(attribute, faults),
                "sensitive" => variable.sensitive = self.flag(attribute, faults),
                other => {
                    faults.error(self.lines.of(attribute), format!("a variable has no attribute `{other}`"));
                }
            }
        }
        if scenario.variables.insert(name.clone(), variable).is_some() {
            faults.error(line, format!("a second variable is called `{name}`"));
        }
    }

    fn output(self, block: &Block, scenario: &mut Scenario, faults: &mut Faults) {
        let Some(name) = self.one_label(block, faults) else { return };
        let line = self.lines.of(block);
        let (mut value, mut sensitive) = (None, false);
        for attribute in self.attributes(&block.body, &[], faults) {
            match attribute.key.value().as_str() {
                "value" => value = self.expression(attribute, faults),
                "description" => {
                    self.literal_text(attribute, faults);
                }
                "sensitive" => sensitive = self.flag(attribute, faults),
                other => {
                    faults.error(self.lines.of(attribute), format!("an output has no attribute `{other}`"));
                }
            }
        }
        match value {
            None if !block.body.has_attribute("value") => {
                faults.error(line, format!("the output `{name}` has no `value`"));
            }
            None => {}
            Some(_) if scenario.outputs.iter().any(|output| output.name == name) => {
                faults.error(line, format!("a second output is called `{name}`"));
            }
            Some(value) => scenario.outputs.push(Output { line, name, value, sensitive }),
        }
    }

    /// The type expression as it is written.
    fn ty(self, attribute: &Attribute, faults: &mut Faults) -> Option<Type> {
        let span = hcl::edit::Span::span(&attribute.value);
        let written = span.and_then(|span| self.text.get(span)).unwrap_or_default();
        match written.trim().parse::<Type>() {
            Ok(ty) => Some(ty),
            Err(error) => {
                faults.error(self.lines.of(attribute), format!("no type: {error}"));
                None
            }
        }
    }

    pub fn expression(self, attribute: &Attribute, faults: &mut Faults) -> Option<Expression> {
        match Expression::read(&attribute.value, self.lines) {
            Ok(expression) => Some(expression),
            Err(error) => {
                faults.expression(error);
                None
            }
        }
    }

    /// A value that is written out.
    pub fn literal(self, attribute: &Attribute, faults: &mut Faults) -> Option<Value> {
        let expression = self.expression(attribute, faults)?;
        let value = expression.as_literal().cloned();
        if value.is_none() {
            let what = format!("`{}` is written out here, without references", attribute.key.value());
            faults.error(expression.line, what);
        }
        value
    }

    pub fn literal_text(self, attribute: &Attribute, faults: &mut Faults) -> Option<String> {
        let value = self.literal(attribute, faults)?;
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            faults.error(self.lines.of(attribute), format!("`{}` is a text", attribute.key.value()));
        }
        text
    }

    fn flag(self, attribute: &Attribute, faults: &mut Faults) -> bool {
        let Some(value) = self.literal(attribute, faults) else { return false };
        value.as_bool().unwrap_or_else(|| {
            faults.error(self.lines.of(attribute), format!("`{}` is true or false", attribute.key.value()));
            false
        })
    }

    /// The attributes of a body that has blocks of these names alone.
    pub fn attributes<'b>(self, body: &'b Body, blocks: &[&str], faults: &mut Faults) -> Vec<&'b Attribute> {
        let mut attributes = Vec::new();
        for structure in body {
            match structure {
                Structure::Attribute(attribute) => attributes.push(attribute),
                Structure::Block(block) => {
                    let name = block.ident.value().as_str();
                    if !blocks.contains(&name) {
                        faults
                            .error(self.lines.of(block), format!("the block `{name}` is not supported here"));
                    }
                }
            }
        }
        attributes
    }

    /// All attributes of a body as expressions.
    pub fn attrs(self, body: &Body, blocks: &[&str], faults: &mut Faults) -> Attrs {
        let attributes = self.attributes(body, blocks, faults);
        let each = attributes.into_iter().filter_map(|attribute| {
            let value = self.expression(attribute, faults)?;
            Some((attribute.key.value().as_str().to_owned(), value))
        });
        each.collect()
    }

    fn no_labels(self, block: &Block, faults: &mut Faults) {
        if !block.labels.is_empty() {
            faults.error(self.lines.of(block), format!("the block `{}` has no name", block.ident.value()));
        }
    }

    fn one_label(self, block: &Block, faults: &mut Faults) -> Option<String> {
        let labels = self.labels::<1>(block, faults, "one name")?;
        let [name] = labels;
        Some(name)
    }

    /// So many names of a block.
    pub fn labels<const N: usize>(
        self,
        block: &Block,
        faults: &mut Faults,
        needed: &str,
    ) -> Option<[String; N]> {
        let line = self.lines.of(block);
        let labels: Vec<String> = block.labels.iter().map(BlockLabel::as_str).map(str::to_owned).collect();
        if let Some(bad) = labels.iter().find(|label| !is_name(label)) {
            faults.error(line, format!("{bad:?} is no name: a letter, then letters, digits, _ and -"));
            return None;
        }
        let labels = <[String; N]>::try_from(labels);
        if labels.is_err() {
            faults.error(line, format!("the block `{}` needs {needed}", block.ident.value()));
        }
        labels.ok()
    }
}
