//! How figures grow with the fleet, drawn: a picture and bars of text.

use std::fmt::Write as _;

use super::report::number;

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 230.0;
/// Around each picture, for its title and the numbers at its axes.
const LEFT: f64 = 64.0;
const TOP: f64 = 38.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 34.0;
const BAR: usize = 40;
const COLOURS: [&str; 3] = ["#1f6feb", "#d97706", "#16a34a"];

/// One figure over the sizes of the fleet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Its name.
    pub(super) name: &'static str,
    /// Servers, and the figure.
    pub(super) points: Vec<(f64, f64)>,
}

/// A picture of one or a few figures in the same unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    /// What it shows, with the unit.
    pub(super) title: &'static str,
    /// Its lines; those beyond the third repeat a colour.
    pub(super) lines: Vec<Line>,
}

/// All panels, two beside each other. Numbers come from measurements, so nothing in it has to be escaped.
pub(super) fn svg(panels: &[Panel]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a handful of pictures")]
    let (rows, columns) = (panels.len().div_ceil(2) as f64, panels.len().min(2) as f64);
    let (width, height) = (WIDTH * columns, HEIGHT * rows);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (position, panel) in panels.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of pictures")]
        let (x, y) = (WIDTH * (position % 2) as f64, HEIGHT * (position / 2) as f64);
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">\n{}</g>", drawn(panel));
    }
    text + "</svg>\n"
}

fn drawn(panel: &Panel) -> String {
    let all = || panel.lines.iter().flat_map(|line| line.points.iter());
    let (least, most) =
        all().fold((f64::INFINITY, 1.0_f64), |(least, most), (x, _)| (least.min(*x), most.max(*x)));
    let highest = round_up(all().fold(0.0_f64, |highest, (_, y)| highest.max(*y)));
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    // Sizes are spread by their logarithm: a thousand and fifty thousand have to be told apart on one axis.
    let span = (most / least.max(1.0)).log10().max(f64::MIN_POSITIVE);
    let place = |x: f64| {
        if most > least {
            LEFT + (right - LEFT) * (x / least).log10() / span
        } else {
            f64::midpoint(LEFT, right)
        }
    };
    let level = |y: f64| bottom - (bottom - TOP) * y / highest;
    let mut text = format!("<text x=\"{LEFT}\" y=\"16\" font-weight=\"bold\">{}</text>\n", panel.title);
    for share in [0.0, 0.5, 1.0] {
        let (y, shown) = (level(highest * share), number(highest * share));
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#d0d7de\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    if let Some(line) = panel.lines.first() {
        for (x, _) in &line.points {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                place(*x),
                bottom + 16.0,
                number(*x)
            );
        }
    }
    for (position, line) in panel.lines.iter().enumerate() {
        let colour = COLOURS.get(position % COLOURS.len()).copied().unwrap_or_default();
        let points: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", place(*x), level(*y))).collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        for (x, y) in &line.points {
            let _ = writeln!(
                text,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                place(*x),
                level(*y)
            );
        }
        #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
        let x = LEFT + 130.0 * position as f64;
        let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"30\" fill=\"{colour}\">{}</text>", line.name);
    }
    text
}

/// One, two or five times a power of ten, at least `value`.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|round| *round >= value).unwrap_or(value)
}

/// The same as bars, for a terminal or a mail.
pub(super) fn text(panels: &[Panel]) -> String {
    let mut text = String::new();
    for panel in panels {
        let highest =
            panel.lines.iter().flat_map(|line| line.points.iter()).fold(0.0_f64, |most, (_, y)| most.max(*y));
        let _ = writeln!(text, "{}", panel.title);
        for line in &panel.lines {
            for (x, y) in &line.points {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a share of a short bar"
                )]
                let bar = "█".repeat((y / highest.max(f64::MIN_POSITIVE) * BAR as f64).round() as usize);
                let _ = writeln!(text, "  {:<22} {:>7}  {bar:<BAR$} {}", line.name, number(*x), number(*y));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let points = vec![(1000.0, 20.0), (5000.0, 21.0), (50_000.0, 40.0)];
        Panel { title: "memory, MiB", lines: vec![Line { name: "provisioner", points }] }
    }

    #[test]
    fn the_picture_is_whole_and_within_its_frame() {
        let picture = svg(&[panel(), panel(), panel()]);
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"), "{picture}");
        assert_eq!(picture.matches("<g ").count(), picture.matches("</g>").count());
        assert_eq!(picture.matches("<circle").count(), 9);
        // The largest fleet is at the right, the highest figure below the top.
        let last = format!("cx=\"{:.1}\"", WIDTH - RIGHT);
        assert!(picture.contains(&last) && !picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn one_size_alone_can_be_drawn() {
        let points = vec![(1000.0, 0.0)];
        let picture = svg(&[Panel { title: "x", lines: vec![Line { name: "y", points }] }]);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn bars_are_as_long_as_their_figure() {
        let told = text(&[panel()]);
        let bars: Vec<usize> = told.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(bars, [0, 20, 21, 40], "{told}");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, expected) in [(0.0, 1.0), (37.0, 50.0), (1.0, 1.0), (0.3, 0.5), (60_000.0, 100_000.0)] {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}");
        }
    }
}
