//! The plots of docs/figures.md: drawn from the page's own tables, whose numbers must stand on the pages that it links.

use std::fmt::Write;

use super::{hold, markdown};
use crate::common::root;

/// A table behind the image that shows it.
struct Plot<'a> {
    /// the image's file, from docs/
    file: &'a str,
    /// the image's text, which is the title
    title: &'a str,
    /// what the columns after the first hold
    series: Vec<&'a str>,
    /// a label, and a number for each of the series as it is written
    rows: Vec<(&'a str, Vec<&'a str>)>,
    /// the pages that the text before the image links, from docs/
    sources: Vec<String>,
}

/// The words between the bars of a table's row.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The plots of a page, in order.
fn plots(text: &str) -> Vec<Plot<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut from = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("## ") {
            from = at;
        }
        let Some((title, file)) = line
            .strip_prefix("![")
            .and_then(|l| l.strip_suffix(')'))
            .and_then(|l| l.split_once("]("))
        else {
            continue;
        };
        let mut table = lines[at + 1..]
            .iter()
            .skip_while(|l| !l.starts_with('|'))
            .take_while(|l| l.starts_with('|'));
        let series = cells(table.next().expect("a table follows the plot"))[1..].to_vec();
        let rows = table.skip(1).map(|l| {
            let cells = cells(l);
            (cells[0], cells[1..].to_vec())
        });
        let prose: Vec<(usize, &str)> = (1..).zip(lines[from..at].iter().copied()).collect();
        let sources = markdown::links(&prose).into_iter().map(|l| l.target);
        found.push(Plot {
            file,
            title,
            series,
            rows: rows.collect(),
            sources: sources.collect(),
        });
    }
    found
}

/// Colours that can be told apart in print and by the colour-blind (Okabe and Ito).
const COLOURS: [&str; 3] = ["#0072b2", "#e69f00", "#009e73"];
/// Height of a bar, distance of two groups, width of the labels, of the longest bar, and of a number behind it, in pixels.
const BAR: usize = 14;
const GAP: usize = 10;
const LABELS: usize = 100;
const LONGEST: usize = 420;
const NUMBER: usize = 50;

/// Horizontal bars from 0, a group a row, each with its number as the table has it.
fn draw(plot: &Plot) -> String {
    let value = |n: &str| n.parse::<f64>().expect("cells of a plot are numbers");
    let most = plot
        .rows
        .iter()
        .flat_map(|r| &r.1)
        .map(|n| value(n))
        .fold(0.0, f64::max);
    let group = plot.series.len() * BAR + GAP;
    let legend = 20;
    let (width, height) = (
        LABELS + LONGEST + NUMBER,
        2 * legend + plot.rows.len() * group + GAP,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"4\" y=\"14\" font-weight=\"bold\">{}</text>\n",
        plot.title, plot.title
    );
    for (i, series) in plot.series.iter().enumerate() {
        let x = LABELS + i * LONGEST / plot.series.len();
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{series}</text>",
            legend + 4,
            COLOURS[i],
            x + 14,
            legend + 13
        );
    }
    for (r, (label, numbers)) in plot.rows.iter().enumerate() {
        let top = 2 * legend + GAP / 2 + r * group;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
            LABELS - 6,
            top + plot.series.len() * BAR / 2 + 4
        );
        for (i, number) in numbers.iter().enumerate() {
            let (y, long) = (top + i * BAR, value(number) / most * LONGEST as f64);
            let _ = writeln!(
                svg,
                "<rect x=\"{LABELS}\" y=\"{y}\" width=\"{long:.1}\" height=\"{}\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{number}</text>",
                BAR - 2,
                COLOURS[i],
                LABELS as f64 + long + 4.0,
                y + 11
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn plots_show_what_was_measured() {
    let page = std::fs::read_to_string(root().join("docs/figures.md")).unwrap();
    let plots = plots(&page);
    assert!(plots.len() >= 4, "{} plots", plots.len());
    for plot in &plots {
        let sources: Vec<String> = plot
            .sources
            .iter()
            .map(|s| std::fs::read_to_string(root().join("docs").join(s)).unwrap())
            .collect();
        for (label, numbers) in &plot.rows {
            for number in numbers {
                let stands = |text: &String| {
                    text.split(|c: char| !c.is_ascii_digit() && c != '.')
                        .any(|word| word.trim_end_matches('.') == *number)
                };
                assert!(
                    sources.iter().any(stands),
                    "docs/figures.md: {label}: {number} stands on none of {:?}",
                    plot.sources
                );
            }
        }
        hold(plot.file, &draw(plot));
    }
}
