//! `quartermaster watch`: the status again and again, until Ctrl-C or until nobody reads any more.

use std::io::IsTerminal as _;

use serde_json::json;

use super::args::WatchArgs;
use super::command::{Way, exit_of, put, question};
use super::show;
use crate::app::ControlClient;
use crate::cli::out::Out;
use crate::exit::Exit;

/// To the upper left, and clear what is below.
const REDRAW: &str = "\x1b[H\x1b[J";
const CLEAR: &str = "\x1b[2J";

pub(super) async fn run(args: &WatchArgs, way: &Way, client: &ControlClient, out: &mut Out) -> Exit {
    let redraws = std::io::stdout().is_terminal() && !args.access.json;
    if redraws {
        out.text(CLEAR);
    }
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let asked = question(&args.access, way, "status", json!({}));
        tokio::select! {
            _ = &mut interrupt => return Exit::Success,
            () = look(client, &asked, redraws, args.access.json, out) => {}
        }
        if out.is_closed() {
            return Exit::Success;
        }
        tokio::select! {
            _ = &mut interrupt => return Exit::Success,
            () = tokio::time::sleep(args.every) => {}
        }
    }
}

async fn look(
    client: &ControlClient,
    asked: &super::ask::Question,
    redraws: bool,
    json: bool,
    out: &mut Out,
) {
    let answers = put(client, asked).await;
    let shown = match &answers {
        Ok(answers) if json => show::json(answers, exit_of(answers)),
        Err(fault) if json => {
            json!({"error": fault.to_string(), "answers": [], "errors": [], "silent": []}).to_string()
        }
        Ok(answers) => {
            format!("{}{}", show::people("status", answers), show::troubles(answers).join("\n"))
        }
        Err(fault) => format!("{fault}\n"),
    };
    let moment = crate::operate::moment(crate::clock::now().seconds());
    out.text(&match (json, redraws) {
        (true, _) => format!("{shown}\n"),
        (false, true) => format!("{REDRAW}{moment}   Ctrl-C ends\n{shown}"),
        (false, false) => format!("{moment}\n{shown}\n"),
    });
}
