//! Everything before anything is done: the file, its variables, what its providers say, and whether all of it fits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::future::join_all;
use quartermaster_actors::expression::Expression;
use quartermaster_actors::text::causes;
use quartermaster_proto::provider::Value;

use super::arguments::VariableArgs;
use super::check::{Checked, check, configs};
use super::document::Scenario;
use super::fault::Faults;
use super::read::read;
use super::secrets::Secrets;
use super::sources::{Source, sources};
use super::variables::{Given, values};
use super::world::Known;
use crate::cli::out::say;
use crate::exit::Exit;
use crate::provider::{Asked, ask, cache, explained};

/// A file of steps, looked at from all sides.
#[derive(Debug)]
pub struct Prepared {
    /// The file; an absolute path.
    pub file: PathBuf,
    /// What it says.
    pub scenario: Scenario,
    /// Its providers: settings with their configuration.
    pub sources: BTreeMap<String, Source>,
    /// What they said.
    pub asked: BTreeMap<String, Asked>,
    /// The variables.
    pub variables: BTreeMap<String, Known>,
    /// What must not be shown.
    pub secrets: Secrets,
}

/// Reads a file and asks the providers in it (of these names alone, if any are given) for their schemas. What is wrong is said on
/// standard error.
pub async fn prepare(
    file: &Path,
    name: Option<&str>,
    given: &Given,
    only: Option<&[String]>,
    secrets: Secrets,
) -> Result<(Prepared, Faults), Exit> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let text = std::fs::read_to_string(&file).map_err(|error| {
        say(&format!("{} cannot be read: {error}\n", file.display()));
        Exit::Files
    })?;
    let mut scenario = read(&text, name).map_err(|faults| refuse(&faults, &file))?;
    if let Some(only) = only {
        keep_only(&mut scenario, only);
    }
    let mut faults = Faults::default();
    let variables = values(&scenario, given, &mut faults).map_err(|errors| {
        for error in errors {
            say(&format!("{error}\n"));
        }
        Exit::Usage
    })?;
    let secret = variables.values().filter(|known| known.secret);
    secrets.cover(secret.filter_map(|known| known.value.known()));
    let folder = file.parent().unwrap_or(Path::new("/"));
    let sources = sources(&scenario, folder, &mut faults);
    let cache = cache();
    let each = sources.iter().map(|(name, source)| {
        let cache = cache.as_deref();
        async move { (name.clone(), ask(&source.settings, source.by_describe, cache).await) }
    });
    let (mut asked, mut unusable) = (BTreeMap::new(), false);
    for (name, answer) in join_all(each).await {
        match answer {
            Ok(answer) => {
                let line = scenario.providers.get(&name).map_or(1, |provider| provider.line);
                for warning in &answer.warnings {
                    faults.warning(line, format!("the provider `{name}`: {warning}"));
                }
                asked.insert(name, answer);
            }
            Err(error) => {
                unusable = true;
                say(&format!("{}\n", secrets.text(&explained(&error))));
                hint(&sources, &name);
            }
        }
    }
    if unusable {
        let _ = refuse_if_wrong(&faults, &file);
        return Err(Exit::Files);
    }
    let prepared = Prepared { file, scenario, sources, asked, variables, secrets };
    Ok((prepared, faults))
}

/// These providers alone, and of the variables those to which they refer: the others need no value.
fn keep_only(scenario: &mut Scenario, only: &[String]) {
    scenario.providers.retain(|name, _| only.contains(name));
    let configs = scenario.providers.values().flat_map(|provider| provider.config.values());
    let needed: Vec<String> = configs
        .flat_map(Expression::references)
        .filter_map(|reference| match reference.names()[..] {
            ["var", name, ..] => Some(name.to_owned()),
            _ => None,
        })
        .collect();
    for (name, variable) in &mut scenario.variables {
        if !needed.contains(name) && variable.default.is_none() {
            variable.default = Some(Expression::literal(variable.line, Value::Null));
        }
    }
}

fn hint(sources: &BTreeMap<String, Source>, name: &str) {
    if let Some(hint) = sources.get(name).and_then(|source| source.settings.install_hint.as_ref()) {
        say(&format!("  {hint}\n"));
    }
}

impl Prepared {
    /// Checks the whole of it. Warnings are said on standard error, and so is what is wrong.
    pub fn check(&mut self, faults: &mut Faults) -> Result<Checked, Exit> {
        let schemas = self.asked.iter().map(|(name, asked)| (name.clone(), asked.schema.clone())).collect();
        let folder = self.file.parent().unwrap_or(Path::new("/")).to_owned();
        let checked = check(&self.scenario, self.variables.clone(), &schemas, &folder, faults);
        let text = self.secrets.text(&faults.to_text(&self.file));
        say(&text);
        let Some(checked) = checked.filter(|_| faults.is_right()) else { return Err(Exit::Config) };
        self.take_configs(&checked.configs.clone(), &checked.secret_config);
        Ok(checked)
    }

    /// Checks the configurations of the providers alone.
    pub fn check_configs(&mut self, faults: &mut Faults) -> Result<(), Exit> {
        let schemas = self.asked.iter().map(|(name, asked)| (name.clone(), asked.schema.clone())).collect();
        let folder = self.file.parent().unwrap_or(Path::new("/")).to_owned();
        let (configs, secret) = configs(&self.scenario, &self.variables, &schemas, &folder, faults);
        refuse_if_wrong(faults, &self.file)?;
        self.take_configs(&configs, &secret);
        Ok(())
    }

    fn take_configs(
        &mut self,
        configs: &BTreeMap<String, quartermaster_proto::provider::Members>,
        secret: &BTreeMap<String, Vec<String>>,
    ) {
        for (name, config) in configs {
            let hidden = secret.get(name).into_iter().flatten().filter_map(|part| config.get(part));
            self.secrets.cover(hidden);
            if let Some(source) = self.sources.get_mut(name) {
                source.settings.config = config.clone();
                source.settings.probed = self.asked.get(name).map(|asked| asked.schema.clone());
            }
        }
    }
}

fn refuse(faults: &Faults, file: &Path) -> Exit {
    say(&faults.to_text(file));
    Exit::Config
}

fn refuse_if_wrong(faults: &Faults, file: &Path) -> Result<(), Exit> {
    if faults.is_right() { Ok(()) } else { Err(refuse(faults, file)) }
}

/// What was given from outside, or the exit code for what cannot be read.
pub fn given(args: &VariableArgs) -> Result<Given, Exit> {
    args.given().map_err(|error| {
        say(&format!("{error}\n"));
        Exit::Files
    })
}

/// An error and its causes, said on standard error.
pub fn complain(error: &dyn std::error::Error) {
    say(&format!("{}\n", causes(error)));
}
