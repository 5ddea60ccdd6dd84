//! The document of a benchmark: what was measured, and under which conditions.

use serde::Serialize;

/// From this part of a processor's time on, other work makes figures doubtful.
const BUSY: f64 = 0.1;

/// A value over repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// the lowest
    pub low: f64,
    /// the highest
    pub high: f64,
}

/// The median of some values, and how far they lie apart.
pub fn median(values: &[f64]) -> (f64, Spread) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else {
        return (0.0, Spread::default());
    };
    let spread = Spread {
        low: *low,
        high: *high,
    };
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let (below, above) = (at((sorted.len() - 1) / 2), at(sorted.len() / 2));
    (f64::midpoint(below, above), spread)
}

/// A ratio over repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// the median
    pub median: f64,
    /// how far they lie apart
    pub spread: Spread,
}

/// Latency at some rate.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// the rate as a share of the highest without loss
    pub fraction: f64,
    /// the rate, million packets a second
    pub mpps: f64,
    /// half of the packets took less, ns; none where the function sent no packet
    pub p50_ns: Option<f64>,
    /// of a hundred packets 99 took less, ns
    pub p99_ns: Option<f64>,
    /// of a thousand packets 999 took less, ns
    pub p999_ns: Option<f64>,
    /// packets lost meanwhile, as a share of those offered
    pub lost: f64,
}

/// A function on so many cores.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// its name
    pub nf: String,
    /// `alone` on one core; on several as the plan says
    pub strategy: &'static str,
    /// where packets come from: `vnic`, or `memory`, each worker's own
    pub port: &'static str,
    /// workers
    pub cores: usize,
    /// ns a packet charged on top of the dispatch: a simulation when it is not 0
    pub charged_ns: f64,
    /// the highest rate without loss, million packets a second: the median over repetitions
    pub mpps: f64,
    /// and how far the repetitions lie apart
    pub spread: Spread,
    /// that rate as a share of the limit's, repetition by repetition
    pub of_limit: Option<f64>,
    /// the software NIC could not offer more: the function's own rate may be higher
    pub limited_by_nic: bool,
    /// packets that workers take when they are waited for, million a second
    pub taken_mpps: f64,
    /// ns a packet inside the function; of a chain from the first function's start to the last one's end
    pub function_ns: f64,
    /// of a chain, the part of it inside its functions
    pub functions_ns: f64,
    /// the two over those of the first function that was measured on as many cores, repetition by repetition; none of the first
    pub of_first: Vec<Ratio>,
    /// at the highest of the fractions
    pub p50_ns: Option<f64>,
    /// at the highest of the fractions
    pub p99_ns: Option<f64>,
    /// at each of the fractions
    pub latency: Vec<Latency>,
    /// each worker's share of the packets
    pub load: Vec<f64>,
    /// the busiest worker's packets over the mean
    pub imbalance: f64,
    /// the part of the packets that wrote shared state, where it was counted (`--memory`)
    pub writes: Option<f64>,
}

/// Something that was asked for and not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// the function
    pub nf: String,
    /// on so many cores
    pub cores: usize,
    /// why not
    pub why: String,
}

/// Under which circumstances the figures hold.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Conditions {
    /// the processor's name
    pub processor: String,
    /// processors that could be used
    pub processors: Vec<usize>,
    /// the part of their time that other work took just before anything was measured; none where the system does not say
    pub busy: Option<f64>,
    /// without a NIC: each worker had its packets in its own memory
    pub memory: bool,
    /// the system
    pub system: String,
    /// this program's version
    pub version: &'static str,
    /// the capture
    pub trace: String,
    /// what the software NIC says of itself
    pub nic: Vec<String>,
    /// measured: what receive and transmit cost a worker, ns a packet
    pub dispatch_ns: f64,
    /// packets a burst
    pub burst: usize,
    /// the loss at which a rate still passes, as a share
    pub loss: f64,
    /// seconds a trial
    pub trial_seconds: f64,
    /// how often everything was measured, in turns
    pub repetitions: usize,
}

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// one each function, number of cores and charge
    pub runs: Vec<Run>,
    /// the same port with a function that only forwards, as `runs`
    pub limit: Vec<Run>,
    /// what was not measured
    pub skipped: Vec<Skipped>,
    /// how
    pub conditions: Conditions,
}

impl Document {
    /// The runs with those of the limit in front.
    pub fn all(&self) -> impl Iterator<Item = &Run> {
        self.limit.iter().chain(&self.runs)
    }

    /// What speaks against the figures, a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let Some(busy) = self.conditions.busy.filter(|b| *b >= BUSY) {
            doubts.push(format!(
                "The machine was busy: other work took {:.0} % of the time of processors {:?} just before. Measure again \
                 on one that is idle.",
                busy * 100.0,
                self.conditions.processors
            ));
        }
        let faster = |run: &&Run| run.of_limit.is_some_and(|share| share > 1.0);
        for run in self.runs.iter().filter(faster) {
            doubts.push(format!(
                "{} on {} core{} was measured faster than the limit, the same port with a function that only forwards, \
                 which cannot be: do not compare the two by these figures.",
                run.nf,
                run.cores,
                if run.cores == 1 { "" } else { "s" }
            ));
        }
        doubts
    }

    /// A line each run, for tables of other programs.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "nf,strategy,port,cores,charged_ns,mpps,mpps_low,mpps_high,of_limit,limited_by_nic,function_ns,fraction,latency_mpps,p50_ns,p99_ns,p999_ns,lost\n",
        );
        for run in self.all() {
            let of_limit = run.of_limit.map_or(String::new(), |r| format!("{r:.4}"));
            let head = format!(
                "{},{},{},{},{},{:.4},{:.4},{:.4},{of_limit},{},{:.2}",
                quoted(&run.nf),
                run.strategy,
                run.port,
                run.cores,
                run.charged_ns,
                run.mpps,
                run.spread.low,
                run.spread.high,
                run.limited_by_nic,
                run.function_ns
            );
            for l in &run.latency {
                let ns = |time: Option<f64>| time.map_or(String::new(), |t| format!("{t:.0}"));
                text.push_str(&format!(
                    "{head},{},{:.4},{},{},{},{:.6}\n",
                    l.fraction,
                    l.mpps,
                    ns(l.p50_ns),
                    ns(l.p99_ns),
                    ns(l.p999_ns),
                    l.lost
                ));
            }
            if run.latency.is_empty() {
                text.push_str(&format!("{head},,,,,,\n"));
            }
        }
        text
    }
}

/// A field as RFC 4180 has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let (middle, spread) = median(&[3.0, 1.0, 2.0]);
        assert!((middle - 2.0).abs() < 1e-9 && spread.low < 1.1 && spread.high > 2.9);
        assert!((median(&[1.0, 2.0]).0 - 1.5).abs() < 1e-9);
        assert!(median(&[]).0.abs() < 1e-9);
    }

    #[test]
    fn doubts_are_about_other_work_and_what_cannot_be() {
        let mut document = super::super::page::tests::document(&[1], &[1.0, 2.0]);
        assert!(document.doubts().is_empty());
        document.conditions.busy = Some(0.05);
        document.runs[0].of_limit = Some(0.99);
        assert!(document.doubts().is_empty());
        document.conditions.busy = Some(0.8);
        document.runs[0].of_limit = Some(1.02);
        let doubts = document.doubts();
        assert!(
            doubts[0].contains("80 %") && doubts[1].contains("faster than the limit"),
            "{doubts:?}"
        );
        assert_eq!(doubts.len(), 2);
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("nop"), "nop");
    }
}
