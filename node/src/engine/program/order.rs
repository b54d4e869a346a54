//! Who is told first, and who need not be told.

use super::Program;

/// The programs in the order in which they are told, each once: restarts, reloads, commands. A unit that is restarted is
/// not reloaded, and one that is to be started in any case is started.
pub fn in_order(owed: &[Program]) -> Vec<Program> {
    let unit_of = |program: &Program| match program {
        Program::Restart { unit, .. } | Program::Reload { unit, .. } => Some(unit.clone()),
        Program::Command(_) => None,
    };
    let starts = |name: &String| {
        owed.iter().any(|program| match program {
            Program::Restart { unit, start } | Program::Reload { unit, start } => *start && unit == name,
            Program::Command(_) => false,
        })
    };
    let mut units: Vec<String> = Vec::new();
    for unit in owed.iter().filter_map(unit_of) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let is_restarted =
        |name: &String| owed.iter().any(|p| matches!(p, Program::Restart { unit, .. } if unit == name));
    let (restarts, reloads): (Vec<String>, Vec<String>) = units.into_iter().partition(is_restarted);
    let mut order: Vec<Program> = Vec::new();
    order.extend(restarts.into_iter().map(|unit| Program::Restart { start: starts(&unit), unit }));
    order.extend(reloads.into_iter().map(|unit| Program::Reload { start: starts(&unit), unit }));
    for command in owed.iter().filter(|program| matches!(program, Program::Command(_))) {
        if !order.contains(command) {
            order.push(command.clone());
        }
    }
    order
}
