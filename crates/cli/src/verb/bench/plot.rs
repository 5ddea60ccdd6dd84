//! Plots as SVG, to stand inside an HTML page. Colours come from the page's style sheet.

use std::fmt::Write;

use millrace_object::markup::escaped;

/// Colours that the style sheet has, `s0` and so on.
pub const COLOURS: usize = 8;
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 44.0;
/// From a series' points to those of the next at the same place.
const ASIDE: f64 = 5.0;

/// A line of a plot, or the bars of one colour.
pub struct Series {
    /// what it is
    pub name: String,
    /// along the axis; for bars, in the order of their groups
    pub points: Vec<Point>,
}

/// A value with how far its repetitions lie apart.
#[derive(Clone, Copy)]
pub struct Point {
    /// where it stands
    pub x: f64,
    /// the value
    pub y: f64,
    /// the lowest and the highest, where there are several
    pub range: Option<(f64, f64)>,
}

/// Steps of an axis from 0 to at least `most`: 1, 2 or 5 times a power of ten, at most six of them.
fn steps(most: f64) -> Vec<f64> {
    let most = if most.is_finite() && most > 0.0 {
        most
    } else {
        1.0
    };
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let unit = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let count = (most / unit - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|i| i as f64 * unit).collect()
}

fn number(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{:.1}", v).trim_end_matches(".0").to_owned(),
        v => {
            let text = format!("{v:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// The frame: axes, grid, names; gives where a value of the upright axis stands.
struct Frame {
    svg: String,
    top: f64,
}

impl Frame {
    fn new(most: f64, upright: &str, along: &str) -> Self {
        let steps = steps(most);
        let top = steps.last().copied().unwrap_or(1.0);
        let mut frame = Self {
            svg: format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n"),
            top,
        };
        for step in &steps {
            let y = frame.y(*step);
            let (right, label) = (WIDTH - RIGHT, number(*step));
            frame.put(&format!(
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            ));
        }
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        frame.put(&format!(
            "<text class=\"axis\" transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(upright)
        ));
        frame.put(&format!(
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 6.0,
            escaped(along)
        ));
        frame
    }

    fn put(&mut self, element: &str) {
        self.svg.push_str(element);
        self.svg.push('\n');
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        HEIGHT - BOTTOM - (value / self.top).clamp(0.0, 1.0) * height
    }

    fn tick(&mut self, x: f64, label: &str) {
        self.put(&format!(
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            escaped(label)
        ));
    }

    fn legend(&mut self, index: usize, name: &str) {
        let y = TOP + 8.0 + 18.0 * index as f64;
        let x = WIDTH - RIGHT + 16.0;
        self.put(&format!(
            "<rect class=\"s{}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            index % COLOURS,
            y - 9.0,
            x + 16.0,
            y,
            escaped(name)
        ));
    }

    fn done(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// The largest value of some series, ranges included.
fn most(series: &[Series]) -> f64 {
    let points = series.iter().flat_map(|s| &s.points);
    points
        .map(|p| p.range.map_or(p.y, |(_, high)| high.max(p.y)))
        .fold(0.0, f64::max)
}

/// Lines over a number. `ideal` draws a thin line with the first point's slope for each series: what
/// doubling the number would give at best.
pub fn lines(series: &[Series], upright: &str, along: &str, ideal: bool) -> String {
    let mut frame = Frame::new(most(series), upright, along);
    let all = || series.iter().flat_map(|s| &s.points).map(|p| p.x);
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    let width = WIDTH - LEFT - RIGHT;
    let x = |value: f64| {
        if high > low {
            LEFT + 20.0 + (value - low) / (high - low) * (width - 40.0)
        } else {
            LEFT + width / 2.0
        }
    };
    let mut ticks: Vec<f64> = all().collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in &ticks {
        frame.tick(x(*tick), &number(*tick));
    }
    let half = series.len().saturating_sub(1) as f64 / 2.0;
    for (index, series) in series.iter().enumerate() {
        let colour = index % COLOURS;
        // Beside each other, so that none hides another that is as fast.
        let x = |value: f64| x(value) + (index as f64 - half) * ASIDE;
        if let (true, Some(first), Some(last)) =
            (ideal, series.points.first(), series.points.last())
            && last.x > first.x
            && first.x > 0.0
        {
            let best = (first.y * last.x / first.x).min(frame.top);
            let end = first.x * best / first.y.max(1e-9);
            frame.put(&format!(
                "<path class=\"ideal l{colour}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
                x(first.x),
                frame.y(first.y),
                x(end),
                frame.y(best)
            ));
        }
        let mut path = String::new();
        for (place, point) in series.points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{:.1} {:.1}", x(point.x), frame.y(point.y));
        }
        frame.put(&format!("<path class=\"line l{colour}\" d=\"{path}\"/>"));
        for point in &series.points {
            whisker(&mut frame, colour, x(point.x), point);
            frame.put(&format!(
                "<circle class=\"s{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}: {} at {}</title></circle>",
                x(point.x),
                frame.y(point.y),
                escaped(&series.name),
                number(point.y),
                number(point.x)
            ));
        }
        frame.legend(index, &series.name);
    }
    frame.done()
}

fn whisker(frame: &mut Frame, colour: usize, x: f64, point: &Point) {
    if let Some((low, high)) = point.range {
        frame.put(&format!(
            "<path class=\"line l{colour}\" d=\"M{x:.1} {:.1}V{:.1}\"/>",
            frame.y(low),
            frame.y(high)
        ));
    }
}

/// Bars in groups: point `i` of each series stands in group `i`.
pub fn bars(groups: &[String], series: &[Series], upright: &str, along: &str) -> String {
    let mut frame = Frame::new(most(series), upright, along);
    let each = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = (each * 0.8 / series.len().max(1) as f64).min(40.0);
    let half = series.len() as f64 / 2.0;
    for (place, group) in groups.iter().enumerate() {
        let centre = LEFT + (place as f64 + 0.5) * each;
        frame.tick(centre, group);
        for (index, series) in series.iter().enumerate() {
            let Some(point) = series.points.get(place) else {
                continue;
            };
            let left = centre + (index as f64 - half) * bar;
            let (top, bottom) = (frame.y(point.y), frame.y(0.0));
            frame.put(&format!(
                "<rect class=\"s{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} {}: {}</title></rect>",
                index % COLOURS,
                bar * 0.92,
                (bottom - top).max(0.5),
                escaped(group),
                escaped(&series.name),
                number(point.y)
            ));
            whisker(&mut frame, index % COLOURS, left + bar * 0.46, point);
        }
    }
    for (index, series) in series.iter().enumerate() {
        frame.legend(index, &series.name);
    }
    frame.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point {
            x,
            y,
            range: Some((y * 0.9, y * 1.1)),
        }
    }

    #[test]
    fn axes_have_round_steps() {
        assert_eq!(number(steps(7.3).last().copied().unwrap_or(0.0)), "8");
        assert!(steps(7.3).len() <= 7);
        for most in [1e-6, 0.3, 1.0, 9.99, 10.0, 12345.0, 0.0, f64::NAN] {
            let steps = steps(most);
            assert!((2..=11).contains(&steps.len()), "{most}: {steps:?}");
            assert!(
                most.is_nan() || steps.last().copied().unwrap_or(0.0) >= most * 0.999,
                "{most}"
            );
        }
    }

    #[test]
    fn a_plot_is_well_formed_and_hides_no_markup() {
        let series = vec![Series {
            name: "<b>&".into(),
            points: vec![point(1.0, 2.0), point(4.0, 7.0)],
        }];
        for plot in [
            lines(&series, "Mpps", "cores", true),
            bars(&["a".into(), "b".into()], &series, "ns", ""),
            lines(&[], "", "", false),
            bars(&[], &[], "", ""),
        ] {
            assert!(plot.starts_with("<svg") && plot.ends_with("</svg>\n"));
            assert!(!plot.contains("<b>") && !plot.contains("NaN") && !plot.contains("inf"));
        }
    }
}
