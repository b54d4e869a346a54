//! The verbs: connect, ask, show, and the exit code.

use std::io::IsTerminal as _;
use std::sync::Arc;

use quartermaster_actors::link::ServerAddress;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::args::{AccessArgs, HostsArgs, SayArgs, Verb};
use super::ask::{Answer, Answers, AskFault, Question, ask};
use super::{show, watch};
use crate::app::{ControlClient, Route};
use crate::check::{Style, render};
use crate::cli::out::{Out, say};
use crate::config::{ControlLogin, Surroundings, TlsFiles, load};
use crate::exit::Exit;

/// Hosts that are asked for at once: so few that their page fits into what brokers take by default.
const PAGE: usize = 500;

/// A way to the instances: the route, and the first words of their subjects.
pub(super) struct Way {
    pub(super) route: Route,
    pub(super) prefix: String,
}

/// Does what the verb says.
pub fn run(verb: &Verb, around: &Surroundings<'_>, out: &mut Out) -> Exit {
    let access = verb.access();
    let way = match way(access, around) {
        Ok(way) => way,
        Err(exit) => return exit,
    };
    actix_rt::System::new().block_on(async {
        let client = match ControlClient::open(&way.route, access.timeout).await {
            Ok(client) => client,
            Err(why) => return failed(access, Exit::Broker, &why, out),
        };
        let exit = match verb {
            Verb::Watch(args) => watch::run(args, &way, &client, out).await,
            Verb::Hosts(args) => hosts(args, &way, &client, out).await,
            _ => once(verb, &way, &client, around, out).await,
        };
        client.close().await;
        exit
    })
}

fn way(access: &AccessArgs, around: &Surroundings<'_>) -> Result<Way, Exit> {
    let named = |default: &str| access.prefix.clone().unwrap_or_else(|| default.to_owned());
    let Some(file) = &access.config else {
        let list = access.server.as_deref().unwrap_or_default();
        let addresses = list.split(',').filter(|one| !one.trim().is_empty()).map(ServerAddress::parse);
        let servers = addresses.collect::<Result<Vec<_>, _>>().map_err(|error| {
            tracing::error!("--server: {error}");
            Exit::Usage
        })?;
        let route = Route::Server { servers, login: Box::new(login(access)?) };
        return Ok(Way { route, prefix: named("quartermaster") });
    };
    match load(file, access.choria_config.as_deref(), around).usable() {
        Ok((config, _)) => {
            let prefix = named(&config.control.subject_prefix);
            Ok(Way { route: Route::Instance(Arc::new(config)), prefix })
        }
        Err(faults) => {
            let style = Style::of_terminal(std::io::stderr().is_terminal(), around.env);
            say(&render(&faults, style));
            Err(faults.exit())
        }
    }
}

fn login(access: &AccessArgs) -> Result<ControlLogin, Exit> {
    let password = match &access.password_file {
        None => None,
        Some(file) => match std::fs::read_to_string(file) {
            Ok(text) => Some(SecretString::from(text.trim_end_matches(['\r', '\n']))),
            Err(error) => {
                tracing::error!("--password-file: failed to read `{}`: {error}", file.display());
                return Err(Exit::Files);
            }
        },
    };
    for file in [&access.creds, &access.tls_ca, &access.tls_cert, &access.tls_key].into_iter().flatten() {
        if let Err(error) = std::fs::File::open(file) {
            tracing::error!("failed to open `{}`: {error}", file.display());
            return Err(Exit::Files);
        }
    }
    Ok(ControlLogin {
        servers: None,
        credentials: access.creds.clone(),
        user: access.user.clone(),
        password,
        tls: TlsFiles {
            certificate: access.tls_cert.clone(),
            key: access.tls_key.clone(),
            ca: access.tls_ca.clone(),
        },
    })
}

/// One question about one subject.
pub(super) fn question(access: &AccessArgs, way: &Way, verb: &'static str, body: Value) -> Question {
    let (prefix, instance) = (way.prefix.clone(), access.instance.clone());
    Question { prefix, verb, instance, body, limit: access.timeout }
}

/// Asks over the present connection.
pub(super) async fn put(client: &ControlClient, question: &Question) -> Result<Answers, AskFault> {
    match client.client() {
        Some(connection) => ask(&connection, question).await,
        None => Err(AskFault::Broker("the connection was lost".to_owned())),
    }
}

async fn once(
    verb: &Verb,
    way: &Way,
    client: &ControlClient,
    around: &Surroundings<'_>,
    out: &mut Out,
) -> Exit {
    let change = |say: &SayArgs| json!({"who": who(say, around), "why": say.why});
    let about = |name: &String, say: &SayArgs| json!({"name": name, "who": who(say, around), "why": say.why});
    let (name, body) = match verb {
        Verb::Status(_) | Verb::Watch(_) => ("status", json!({})),
        Verb::Config(_) => ("config", json!({})),
        Verb::Hosts(_) => ("hosts", json!({})),
        Verb::Host(args) => ("host", json!({"name": args.name})),
        Verb::Pause(args) => ("pause", change(&args.say)),
        Verb::Resume(args) => ("resume", change(&args.say)),
        Verb::Flip(args) => ("flip", change(&args.say)),
        Verb::Discover(args) => ("discover", change(&args.say)),
        Verb::Drain(args) => ("drain", change(&args.say)),
        Verb::Retry(args) => ("retry", about(&args.name, &args.say)),
        Verb::Forget(args) => ("forget", about(&args.name, &args.say)),
    };
    let access = verb.access();
    let mut answers = match put(client, &question(access, way, name, body)).await {
        Ok(answers) => answers,
        Err(fault) => return no_answer(access, &fault, out),
    };
    // Of several instances one knows the host; that the others do not is no fault.
    if matches!(verb, Verb::Host(_) | Verb::Retry(_) | Verb::Forget(_))
        && answers.given.iter().any(|answer| answer.body.is_ok())
    {
        answers
            .given
            .retain(|answer| answer.body.as_ref().err().is_none_or(|error| error.code != "unknown_host"));
    }
    finish(access, name, &answers, out)
}

/// Who asks, unless they say it themselves.
fn who(say: &SayArgs, around: &Surroundings<'_>) -> String {
    say.who.clone().unwrap_or_else(|| {
        let user =
            ["USER", "LOGNAME"].iter().find_map(|name| around.env.get(name)).filter(|name| !name.is_empty());
        let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
        format!("{user}@{}", around.names.hostname())
    })
}

/// Pages through the hosts of every instance.
async fn hosts(args: &HostsArgs, way: &Way, client: &ControlClient, out: &mut Out) -> Exit {
    let access = &args.access;
    let wanted = if args.most == 0 { usize::MAX } else { args.most };
    let page = |after: Option<&str>, most: usize| {
        let HostsArgs { state, text, .. } = args;
        json!({"state": state, "text": text, "after": after, "most": most.min(PAGE)})
    };
    let first = question(access, way, "hosts", page(args.after.as_deref(), wanted));
    let mut answers = match put(client, &first).await {
        Ok(answers) => answers,
        Err(fault) => return no_answer(access, &fault, out),
    };
    for answer in &mut answers.given {
        let Ok(body) = &mut answer.body else { continue };
        loop {
            let next = body.get("next").and_then(Value::as_str).map(str::to_owned);
            let left = wanted.saturating_sub(count(body));
            let Some(next) = next.filter(|_| left > 0) else { break };
            let mut more = question(access, way, "hosts", page(Some(&next), left));
            more.instance = Some(answer.instance.clone());
            let more = put(client, &more).await;
            let Some(Answer { body: Ok(mut page), .. }) =
                more.ok().and_then(|answers| answers.given.into_iter().next())
            else {
                answers.silent.push(answer.instance.clone());
                break;
            };
            let (Some(known), Some(new)) = (
                body.get_mut("hosts").and_then(Value::as_array_mut),
                page.get_mut("hosts").and_then(Value::as_array_mut),
            ) else {
                break;
            };
            known.append(new);
            let after = page.get("next").cloned().unwrap_or_default();
            if let Some(object) = body.as_object_mut() {
                object.insert("next".to_owned(), after);
            }
        }
    }
    finish(access, "hosts", &answers, out)
}

fn count(page: &Value) -> usize {
    page.get("hosts").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Shows the answers and decides the exit code.
fn finish(access: &AccessArgs, verb: &str, answers: &Answers, out: &mut Out) -> Exit {
    let exit = exit_of(answers);
    if access.json {
        out.text(&format!("{}\n", show::json(answers, exit)));
    } else {
        out.text(&show::people(verb, answers));
        for line in show::troubles(answers) {
            say(&format!("{line}\n"));
        }
    }
    exit
}

pub(super) fn exit_of(answers: &Answers) -> Exit {
    let good = answers.given.iter().filter(|answer| answer.body.is_ok()).count();
    if good == answers.given.len() && answers.silent.is_empty() {
        Exit::Success
    } else if good > 0 {
        Exit::Incomplete
    } else if answers.given.is_empty() {
        Exit::NoInstance
    } else {
        Exit::Refused
    }
}

fn no_answer(access: &AccessArgs, fault: &AskFault, out: &mut Out) -> Exit {
    let exit = match fault {
        AskFault::Nobody(_) => Exit::NoInstance,
        AskFault::Broker(_) => Exit::Broker,
    };
    failed(access, exit, &fault.to_string(), out)
}

fn failed(access: &AccessArgs, exit: Exit, why: &str, out: &mut Out) -> Exit {
    if access.json {
        let report = json!({"exit": exit.code(), "error": why, "answers": [], "errors": [], "silent": []});
        out.text(&format!("{report}\n"));
    } else {
        say(&format!("error: {why}\n"));
    }
    exit
}
