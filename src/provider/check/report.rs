//! What the check found, as a table or as JSON.

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::exit::Exit;

/// How one case ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, but.
    Odd(String),
    /// A host would stumble over it.
    Bad(String),
    /// It was not tried, for this reason.
    Skipped(String),
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its name.
    pub case: &'static str,
    /// What a good provider does.
    pub expected: &'static str,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Everything that was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The program.
    pub program: String,
    /// What it calls itself and its version, once that is known.
    pub provider: Option<String>,
    /// The cases, in order.
    pub cases: Vec<Line>,
}

impl Report {
    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.cases.iter().filter(|line| which(&line.verdict)).count()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["case", "a good provider", "found"]);
        for line in &self.cases {
            let found = match &line.verdict {
                Verdict::Good => "good".to_owned(),
                Verdict::Odd(why) => format!("odd: {why}"),
                Verdict::Bad(why) => format!("BAD: {why}"),
                Verdict::Skipped(why) => format!("not tried: {why}"),
            };
            table.add_row([line.case, line.expected, found.as_str()]);
        }
        let bad = self.count(|verdict| matches!(verdict, Verdict::Bad(_)));
        let odd = self.count(|verdict| matches!(verdict, Verdict::Odd(_)));
        let skipped = self.count(|verdict| matches!(verdict, Verdict::Skipped(_)));
        let good = self.count(|verdict| *verdict == Verdict::Good);
        let who = self.provider.as_deref().unwrap_or("no provider");
        format!("{} ({who})\n{table}\n{good} good, {odd} odd, {bad} bad, {skipped} not tried\n", self.program)
    }

    /// For machines.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|_| "{}\n".to_owned(), |text| text + "\n")
    }

    /// Good only when nothing is bad.
    pub fn exit(&self) -> Exit {
        let bad = self.count(|verdict| matches!(verdict, Verdict::Bad(_)));
        if bad == 0 { Exit::Success } else { Exit::Incomplete }
    }
}
