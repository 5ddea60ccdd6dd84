//! Writing families of metrics: no series stands twice, whatever the account has.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Labels of a series, with their values.
pub type Labels<const N: usize> = [(&'static str, String); N];

/// Writes a family of counters. Samples of the same labels are added up: an element that was replaced goes on with the
/// counts of those of its name before it.
pub fn counts<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: Option<&Unit>,
    samples: impl IntoIterator<Item = (Labels<N>, u64)>,
) -> Result<(), Error> {
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for (labels, value) in samples {
        let sum = sums.entry(labels).or_default();
        *sum = sum.saturating_add(value);
    }
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, value) in sums {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The same of times, in seconds.
pub fn times<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    samples: impl IntoIterator<Item = (Labels<N>, f64)>,
) -> Result<(), Error> {
    let mut sums: BTreeMap<_, f64> = BTreeMap::new();
    for (labels, value) in samples {
        *sums.entry(labels).or_default() += value;
    }
    let seconds = Some(&Unit::Seconds);
    let mut metric = encoder.encode_descriptor(name, help, seconds, MetricType::Counter)?;
    for (labels, value) in sums {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Writes a family of values that go up and down; of samples of the same labels the last counts.
pub fn gauges<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: Option<&Unit>,
    samples: impl IntoIterator<Item = (Labels<N>, f64)>,
) -> Result<(), Error> {
    let last: BTreeMap<_, f64> = samples.into_iter().collect();
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in last {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// A document of OpenMetrics as the text format of Prometheus (0.0.4), in which a counter's family has the name of its
/// samples, and there are no units and no end.
pub fn classic(document: &str) -> String {
    let counters: Vec<&str> = document
        .lines()
        .filter_map(|l| l.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::with_capacity(document.len());
    for line in document.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, what, name) = (words.next(), words.next(), words.next());
        match (mark, what, name) {
            (Some("#"), Some("HELP" | "TYPE"), Some(name)) if counters.contains(&name) => {
                let (what, rest) = (what.unwrap_or_default(), words.next().unwrap_or_default());
                text.push_str(&format!("# {what} {name}_total {rest}\n"));
            }
            (Some("#"), Some("UNIT" | "EOF"), _) => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}
