//! Small drawings, made here as SVG without a style of their own, so that no policy has to allow one.

use std::fmt::Write as _;

use crate::web::html::Html;

/// Width and height of the line, in its own units.
const WIDTH: usize = 240;
const HEIGHT: u64 = 40;
/// Width of the bar, in its own units.
const BAR: usize = 1000;

/// A line of a rate: oldest first, from zero to its largest value. Nothing for fewer than two points.
pub(in crate::web) fn sparkline(points: &[u64]) -> Html {
    let most = points.iter().copied().max().unwrap_or_default();
    if points.len() < 2 {
        return Html::default();
    }
    let last = points.len().saturating_sub(1).max(1);
    let mut path = String::new();
    for (at, point) in points.iter().enumerate() {
        let x = at.saturating_mul(WIDTH) / last;
        // A tenth stays free above, so that the line's own width is seen.
        let y = HEIGHT.saturating_sub(point.saturating_mul(HEIGHT - 4).checked_div(most).unwrap_or_default());
        // Writing to a String cannot fail.
        let _ = write!(path, "{}{x} {y}", if at == 0 { "M" } else { "L" });
    }
    Html::of(
        "<svg class=\"spark\" viewBox=\"0 0 240 41\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"rate of the last ten minutes, \
         at most {} a minute\"><path class=\"area\" d=\"{}L240 41L0 41Z\"/><path class=\"line\" d=\"{}\"/></svg>",
        &[&most, &path, &path],
    )
}

/// A bar of parts, each with the class of its name and a width by its share; a part that is not nothing is always seen.
pub(in crate::web) fn bar(counts: &[(&'static str, usize)]) -> Html {
    let total = counts.iter().fold(0_usize, |sum, (_, count)| sum.saturating_add(*count));
    let mut html = Html::default();
    html.put(
        "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} hosts by state\">",
        &[&total],
    );
    let least = BAR / 100;
    let shown: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    // What the smallest are given is taken from everybody.
    let spare = BAR.saturating_sub(least.saturating_mul(shown.len()));
    let mut x = 0_usize;
    for (state, count) in shown {
        let width = share(*count, total, spare).saturating_add(least);
        html.put("<rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"10\"/>", &[state, &x, &width]);
        x = x.saturating_add(width);
    }
    html.put("</svg>\n", &[]);
    html
}

/// A small bar: this much of that whole.
pub(in crate::web) fn share_of_bar(part: u64, whole: u64) -> Html {
    let width = part.min(whole).saturating_mul(100).checked_div(whole).unwrap_or_default().max(1);
    Html::of(
        "<svg class=\"share\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect x=\"0\" y=\"0\" width=\"{}\" height=\"8\"/></svg>",
        &[&width],
    )
}

fn share(count: usize, total: usize, of: usize) -> usize {
    let wide = |number: usize| u128::try_from(number).unwrap_or(u128::MAX);
    let share = wide(count).saturating_mul(wide(of)).checked_div(wide(total)).unwrap_or_default();
    usize::try_from(share).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_zero_to_its_largest_value() {
        let line = sparkline(&[0, 50, 100]).into_string();
        assert!(line.contains("d=\"M0 40L120 22L240 4\""), "{line}");
        assert!(line.contains("at most 100 a minute"), "{line}");
        let flat = sparkline(&[0, 0]).into_string();
        assert!(flat.contains("M0 40L240 40"), "{flat}");
        assert_eq!(sparkline(&[7]), Html::default());
    }

    #[test]
    fn one_host_among_many_is_seen_and_the_bar_is_never_too_long() {
        let bar = bar(&[("waiting", 50_000), ("gave_up", 1), ("held", 0)]).into_string();
        assert!(bar.contains("<rect class=\"waiting\" x=\"0\" y=\"0\" width=\"989\""), "{bar}");
        assert!(bar.contains("<rect class=\"gave_up\" x=\"989\" y=\"0\" width=\"10\""), "{bar}");
        assert!(!bar.contains("held"), "{bar}");
        assert!(super::bar(&[]).as_str().contains("0 hosts"));
        assert_eq!(share(usize::MAX, usize::MAX, 1000), 1000);
    }
}
