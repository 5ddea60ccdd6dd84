//! The page of a benchmark: plots and figures in one HTML file that asks for nothing else.

use std::fmt::Write;

use millrace_object::markup::escaped;

use super::figures::{Document, Run};
use super::plot::{Point, Series, bars, lines};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#d6dae0;--soft:#5b6570}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#15181c;--faint:#333a42;--soft:#9aa4af}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:72rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}\
.wide{overflow-x:auto}.doubt{color:#b3402f;font-weight:600}\
th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid var(--faint);white-space:nowrap}\
thead th{white-space:normal;vertical-align:bottom}\
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--soft)}\
dt{color:var(--soft)}dd{margin:0 0 .4rem 0}.note{color:var(--soft)}.simulated{font-weight:600}\
svg{display:block;width:100%;height:auto;min-width:32rem;max-width:52rem}.grid{stroke:var(--faint);fill:none}\
.tick,.axis{font:12px system-ui,sans-serif;fill:var(--soft)}\
.line{fill:none;stroke-width:2}.ideal{fill:none;stroke-width:1;stroke-dasharray:3 4;opacity:.7}\
.s0{fill:#3867b5}.l0{stroke:#3867b5}.s1{fill:#d1731f}.l1{stroke:#d1731f}.s2{fill:#2f8f5b}.l2{stroke:#2f8f5b}\
.s3{fill:#b33f62}.l3{stroke:#b33f62}.s4{fill:#7a5bb0}.l4{stroke:#7a5bb0}.s5{fill:#8a6d3b}.l5{stroke:#8a6d3b}\
.s6{fill:#2a8c9e}.l6{stroke:#2a8c9e}.s7{fill:#777f88}.l7{stroke:#777f88}";

/// The whole page.
pub fn page(document: &Document) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut page, document);
    page
}

fn write(page: &mut String, document: &Document) -> std::fmt::Result {
    let names: Vec<_> = names(&document.runs);
    writeln!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>millrace bench: {0}</title>\n<style>{STYLE}</style></head><body>\n\
         <h1>millrace bench: {0}</h1>",
        escaped(&names.join(", "))
    )?;
    if document.all().any(|run| run.charged_ns > 0.0) {
        writeln!(
            page,
            "<p class=\"simulated\">Runs with nanoseconds charged simulate a port that costs more: the worker \
             waits that long for every packet.</p>"
        )?;
    }
    for doubt in document.doubts() {
        writeln!(page, "<p class=\"doubt\">{}</p>", escaped(&doubt))?;
    }
    scaling(page, document)?;
    charges(page, document)?;
    latency(page, document)?;
    load(page, document)?;
    table(page, document)?;
    conditions(page, document)?;
    page.push_str("</body></html>\n");
    Ok(())
}

fn names(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        if !names.contains(&run.nf) {
            names.push(run.nf.clone());
        }
    }
    names
}

fn point(x: f64, run: &Run) -> Point {
    Point {
        x,
        y: run.mpps,
        range: Some((run.spread.low, run.spread.high)),
    }
}

/// A plot that is moved within its box where the window is narrower.
fn plot(svg: &str) -> String {
    format!("<div class=\"wide\">{svg}</div>")
}

/// One line a function and charge; where all ran on as many cores, one bar.
fn scaling(page: &mut String, document: &Document) -> std::fmt::Result {
    let mut series: Vec<(String, u64, Series)> = Vec::new();
    for run in document.all() {
        let key = (run.nf.clone(), run.charged_ns.to_bits());
        let x = point(run.cores as f64, run);
        match series
            .iter_mut()
            .find(|(nf, charge, _)| (nf, *charge) == (&key.0, key.1))
        {
            Some((_, _, series)) => series.points.push(x),
            None => series.push((
                key.0,
                key.1,
                Series {
                    name: label(run),
                    points: vec![x],
                },
            )),
        }
    }
    let mut series: Vec<Series> = series.into_iter().map(|(_, _, s)| s).collect();
    for series in &mut series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    const UPRIGHT: &str = "million packets a second";
    let loss = document.conditions.loss * 100.0;
    let note = "Median over the repetitions, with the range of all.";
    let mut cores: Vec<usize> = document.all().map(|run| run.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    let (svg, dashed) = if let [cores] = cores[..] {
        let groups: Vec<String> = series.iter().map(|s| s.name.clone()).collect();
        let one = Series {
            name: format!("{cores} core{}", if cores == 1 { "" } else { "s" }),
            points: series
                .iter()
                .flat_map(|s| s.points.iter().copied().take(1))
                .collect(),
        };
        (bars(&groups, &[one], UPRIGHT, ""), "")
    } else {
        (
            lines(&series, UPRIGHT, "cores", true),
            " Dashed: as many times the first point as there are cores.",
        )
    };
    writeln!(
        page,
        "<h2>Highest rate without loss</h2>\n{}<p class=\"note\">{note}{dashed} Loss below {loss} % passes.</p>",
        plot(&svg)
    )
}

fn label(run: &Run) -> String {
    if run.charged_ns > 0.0 {
        format!("{} +{} ns", run.nf, run.charged_ns)
    } else {
        run.nf.clone()
    }
}

/// The rate over what is charged, where several charges were measured.
fn charges(page: &mut String, document: &Document) -> std::fmt::Result {
    let mut charges: Vec<f64> = document.all().map(|run| run.charged_ns).collect();
    charges.sort_by(f64::total_cmp);
    charges.dedup();
    if charges.len() < 2 {
        return Ok(());
    }
    let cores = document.all().map(|run| run.cores).min().unwrap_or(1);
    let mut series: Vec<Series> = Vec::new();
    for run in document.all().filter(|run| run.cores == cores) {
        let x = point(run.charged_ns + document.conditions.dispatch_ns, run);
        match series.iter_mut().find(|s| s.name == run.nf) {
            Some(series) => series.points.push(x),
            None => series.push(Series {
                name: run.nf.clone(),
                points: vec![x],
            }),
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    writeln!(
        page,
        "<h2>Rate over dispatch cost</h2>\n{}<p class=\"note\">On {cores} core{}. The first point is this \
         machine's software NIC; the others charge more on top, which simulates other ports.</p>",
        plot(&lines(
            &series,
            "million packets a second",
            "dispatch, ns a packet",
            false
        )),
        if cores == 1 { "" } else { "s" }
    )
}

/// Percentiles at the highest of the fractions, on the fewest cores.
fn latency(page: &mut String, document: &Document) -> std::fmt::Result {
    let cores = document.all().map(|run| run.cores).min().unwrap_or(1);
    let runs: Vec<&Run> = document
        .all()
        .filter(|run| run.cores == cores && !run.latency.is_empty())
        .collect();
    let count = runs.iter().map(|run| run.latency.len()).max().unwrap_or(0);
    for index in 0..count {
        let runs: Vec<_> = runs
            .iter()
            .filter_map(|run| Some((run, run.latency.get(index)?)))
            .collect();
        let groups: Vec<String> = runs.iter().map(|(run, _)| label(run)).collect();
        let of = |name: &str, what: fn(&super::figures::Latency) -> Option<f64>| Series {
            name: name.to_owned(),
            points: runs
                .iter()
                .map(|(_, latency)| Point {
                    x: 0.0,
                    y: what(latency).unwrap_or(0.0) / 1000.0,
                    range: None,
                })
                .collect(),
        };
        let series = [
            of("50 %", |l| l.p50_ns),
            of("99 %", |l| l.p99_ns),
            of("99.9 %", |l| l.p999_ns),
        ];
        let fraction = runs.first().map_or(0.0, |(_, l)| l.fraction);
        writeln!(
            page,
            "<h2>Latency at {:.0} % of that rate</h2>\n{}<p class=\"note\">From the NIC's write into a buffer \
             to its reading of the packet sent, on {cores} core{}: of so many per cent of the packets at most.</p>",
            fraction * 100.0,
            plot(&bars(&groups, &series, "microseconds", "")),
            if cores == 1 { "" } else { "s" }
        )?;
    }
    Ok(())
}

/// Shares of the packets, for each run on several cores.
fn load(page: &mut String, document: &Document) -> std::fmt::Result {
    let runs: Vec<&Run> = document.all().filter(|run| run.load.len() > 1).collect();
    if runs.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h2>Load of each worker</h2>")?;
    let most = runs.iter().map(|run| run.cores).max().unwrap_or(1);
    let widest: Vec<&&Run> = runs.iter().filter(|run| run.cores == most).collect();
    let groups: Vec<String> = (0..most).map(|worker| worker.to_string()).collect();
    let series: Vec<Series> = widest
        .iter()
        .map(|run| Series {
            name: label(run),
            points: run
                .load
                .iter()
                .map(|share| Point {
                    x: 0.0,
                    y: share * 100.0,
                    range: None,
                })
                .collect(),
        })
        .collect();
    writeln!(
        page,
        "{}<p class=\"note\">On {most} cores; even would be {:.1} % each.</p>",
        plot(&bars(&groups, &series, "per cent of the packets", "worker")),
        100.0 / most as f64
    )
}

fn table(page: &mut String, document: &Document) -> std::fmt::Result {
    writeln!(
        page,
        "<h2>Figures</h2>\n<div class=\"wide\"><table><thead><tr><th>function</th><th>cores</th><th>charged, ns</th>\
         <th>Mpps</th><th>range</th><th>of the limit</th><th>in the function, ns</th><th>at</th>\
         <th>50 %, µs</th><th>99 %, µs</th><th>99.9 %, µs</th><th>lost, %</th></tr></thead><tbody>"
    )?;
    for run in document.all() {
        let of_limit = run.of_limit.map_or("".into(), |r| format!("{r:.2}"));
        let more = if run.limited_by_nic { "at least " } else { "" };
        let head = format!(
            "<td>{}</td><td>{}</td><td>{}</td><td>{more}{:.2}</td><td>{:.2} to {:.2}</td><td>{of_limit}</td><td>{:.1}</td>",
            escaped(&run.nf),
            run.cores,
            run.charged_ns,
            run.mpps,
            run.spread.low,
            run.spread.high,
            run.function_ns
        );
        let us = |time: Option<f64>| time.map_or("none sent".into(), |t| format!("{:.1}", t / 1e3));
        for (index, l) in run.latency.iter().enumerate() {
            let head = if index == 0 {
                head.clone()
            } else {
                "<td></td>".repeat(7)
            };
            writeln!(
                page,
                "<tr>{head}<td>{:.0} %</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td></tr>",
                l.fraction * 100.0,
                us(l.p50_ns),
                us(l.p99_ns),
                us(l.p999_ns),
                l.lost * 100.0
            )?;
        }
        if run.latency.is_empty() {
            writeln!(page, "<tr>{head}{}</tr>", "<td></td>".repeat(5))?;
        }
    }
    writeln!(page, "</tbody></table></div>")?;
    for skipped in &document.skipped {
        writeln!(
            page,
            "<p class=\"note\">{} on {} cores was not measured: {}.</p>",
            escaped(&skipped.nf),
            skipped.cores,
            escaped(&skipped.why)
        )?;
    }
    Ok(())
}

fn conditions(page: &mut String, document: &Document) -> std::fmt::Result {
    writeln!(page, "<h2>Conditions</h2>\n<dl>")?;
    for (name, value) in super::text::conditions(&document.conditions) {
        writeln!(
            page,
            "<dt>{}</dt><dd>{}</dd>",
            escaped(name),
            escaped(&value)
        )?;
    }
    writeln!(page, "</dl>")
}

#[cfg(test)]
pub mod tests {
    use super::super::figures::{Conditions, Run, Spread};
    use super::*;

    /// Functions of these rates on so many cores each; the first is the limit.
    pub fn document(cores: &[usize], rates: &[f64]) -> Document {
        let run = |place: usize, cores: usize| Run {
            nf: ["nop", "firewall", "nat"][place].to_owned(),
            strategy: "alone",
            port: "vnic",
            cores,
            charged_ns: 0.0,
            mpps: rates[place] * cores as f64,
            spread: Spread::default(),
            of_limit: None,
            limited_by_nic: false,
            taken_mpps: 0.0,
            function_ns: 0.0,
            functions_ns: 0.0,
            of_first: Vec::new(),
            p50_ns: None,
            p99_ns: None,
            latency: Vec::new(),
            load: Vec::new(),
            imbalance: 1.0,
            writes: None,
        };
        let of = |place| cores.iter().map(move |cores| run(place, *cores));
        Document {
            runs: (1..rates.len()).flat_map(of).collect(),
            limit: of(0).collect(),
            skipped: Vec::new(),
            conditions: Conditions::default(),
        }
    }

    #[test]
    fn rates_on_as_many_cores_are_bars_and_others_lines() {
        let one = page(&document(&[1], &[9.0, 8.9, 5.0]));
        assert!(
            !one.contains("<circle") && one.matches("<rect class=\"s0\"").count() == 4,
            "{one}"
        );
        for name in ["nop", "firewall", "nat"] {
            assert!(
                one.contains(&format!("text-anchor=\"middle\">{name}</text>")),
                "{name}"
            );
        }
        let more = page(&document(&[1, 2], &[9.0, 9.0]));
        assert_eq!(more.matches("<circle").count(), 4);
        // Where two functions are as fast, neither hides the other.
        let places: Vec<&str> = more
            .split("cx=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let distinct: std::collections::BTreeSet<&&str> = places.iter().collect();
        assert_eq!(distinct.len(), 4, "{places:?}");
    }

    #[test]
    fn doubts_stand_before_the_first_figure_and_nothing_is_cut_off() {
        let mut document = document(&[1], &[9.0, 9.1]);
        document.conditions.busy = Some(0.5);
        document.runs[0].of_limit = Some(1.01);
        let page = page(&document);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(
            at("The machine was busy") < at("<svg") && at("faster than the limit") < at("<svg")
        );
        assert_eq!(
            page.matches("<div class=\"wide\"><svg").count(),
            page.matches("<svg").count()
        );
        assert!(page.contains("<div class=\"wide\"><table>"));
    }
}
