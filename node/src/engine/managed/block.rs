//! A block of lines between two marker lines.

use super::ManagedError;
use super::lines::{Buffer, bare, close_last_line, ending, lines, push_lines};

/// The two marker lines of one module, without their endings.
#[derive(Debug)]
pub(super) struct Markers {
    begin: Vec<u8>,
    end: Vec<u8>,
    any_begin: Vec<u8>,
    any_end: Vec<u8>,
}

impl Markers {
    pub(super) fn new(comment: &str, comment_end: Option<&str>, module: &str) -> Self {
        let tail = comment_end.map(|end| format!(" {end}")).unwrap_or_default();
        Self {
            begin: format!("{comment} quartermaster begin {module}{tail}").into_bytes(),
            end: format!("{comment} quartermaster end {module}{tail}").into_bytes(),
            any_begin: format!("{comment} quartermaster begin ").into_bytes(),
            any_end: format!("{comment} quartermaster end ").into_bytes(),
        }
    }

    fn is_any(&self, line: &[u8]) -> bool {
        line.starts_with(&self.any_begin) || line.starts_with(&self.any_end)
    }
}

/// The lines before our block and those after it; both are everything when there is no block.
struct Around<'a> {
    before: Vec<&'a [u8]>,
    after: Vec<&'a [u8]>,
    is_there: bool,
}

fn around<'a>(markers: &Markers, target: &'a [u8]) -> Result<Around<'a>, ManagedError> {
    let damaged = |detail, at: usize| ManagedError::Markers { detail, line: at + 1 };
    let all = lines(target);
    let places = |marker: &[u8]| -> Vec<usize> {
        all.iter().enumerate().filter(|(_, line)| bare(line) == marker).map(|(at, _)| at).collect()
    };
    match (places(&markers.begin).as_slice(), places(&markers.end).as_slice()) {
        ([], []) => Ok(Around { before: all, after: Vec::new(), is_there: false }),
        ([begin], [end]) if begin < end => {
            let (before, rest) = all.split_at(*begin);
            let (block, after) = rest.split_at(end - begin + 1);
            let inside =
                block.iter().skip(1).take(end - begin - 1).position(|line| markers.is_any(bare(line)));
            if let Some(at) = inside {
                return Err(damaged("another module's marker stands inside", begin + 1 + at));
            }
            Ok(Around { before: before.to_vec(), after: after.to_vec(), is_there: true })
        }
        ([begin], [_]) => Err(damaged("the end stands before the beginning", *begin)),
        ([_, second, ..], _) => Err(damaged("the beginning stands twice", *second)),
        (_, [_, second, ..]) => Err(damaged("the end stands twice", *second)),
        ([begin], []) => Err(damaged("the end is missing", *begin)),
        ([], [end]) => Err(damaged("the beginning is missing", *end)),
    }
}

pub(super) fn merge(
    markers: &Markers,
    target: &[u8],
    fragment: &[u8],
    at_start: bool,
) -> Result<Vec<u8>, ManagedError> {
    if let Some(at) = lines(fragment).iter().position(|line| markers.is_any(bare(line))) {
        return Err(ManagedError::Markers { detail: "the filled part holds a marker line", line: at + 1 });
    }
    let ending = ending(target);
    let around = around(markers, target)?;
    let (before, after) = if !around.is_there && at_start {
        (Vec::new(), around.before)
    } else {
        (around.before, around.after)
    };
    let mut out = Buffer::with_room(target.len() + fragment.len() * 2 + markers.begin.len() * 2);
    out.push_all(before);
    close_last_line(&mut out, ending);
    push_lines(&mut out, &markers.begin, ending);
    push_lines(&mut out, fragment, ending);
    push_lines(&mut out, &markers.end, ending);
    out.push_all(after);
    Ok(out.take())
}

pub(super) fn withdraw(markers: &Markers, target: &[u8]) -> Result<Vec<u8>, ManagedError> {
    let around = around(markers, target)?;
    let mut out = Buffer::with_room(target.len());
    out.push_all(around.before);
    out.push_all(around.after);
    Ok(out.take())
}
