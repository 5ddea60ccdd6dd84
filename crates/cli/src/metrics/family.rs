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

/// A series that is told from others of its family by one label: samples of it by that label's values.
pub fn by<V, const N: usize>(
    label: &'static str,
    samples: [(&'static str, V); N],
) -> [(Labels<1>, V); N] {
    samples.map(|(value, sample)| ([(label, value.to_owned())], sample))
}

/// The only sample of a family.
pub fn one<V>(sample: V) -> [(Labels<0>, V); 1] {
    [([], sample)]
}

/// Where families go.
pub struct Families<'a>(pub DescriptorEncoder<'a>);

impl Families<'_> {
    /// Writes a family of counters. Samples of the same labels are added up: an element that was replaced goes on with
    /// the counts of those of its name before it.
    pub fn counts<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> Result<(), Error> {
        self.sums(name, help, None, samples, u64::saturating_add)
    }

    /// The same of bytes.
    pub fn bytes<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> Result<(), Error> {
        self.sums(name, help, Some(&Unit::Bytes), samples, u64::saturating_add)
    }

    /// The same of times, in seconds.
    pub fn times<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> Result<(), Error> {
        self.sums(name, help, Some(&Unit::Seconds), samples, |sum, more| {
            sum + more
        })
    }

    fn sums<V: Default, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<N>, V)>,
        add: fn(V, V) -> V,
    ) -> Result<(), Error>
    where
        ConstCounter<V>: EncodeMetric,
    {
        let mut sums: BTreeMap<_, V> = BTreeMap::new();
        for (labels, value) in samples {
            let sum = sums.entry(labels).or_default();
            *sum = add(std::mem::take(sum), value);
        }
        let mut metric = self
            .0
            .encode_descriptor(name, help, unit, MetricType::Counter)?;
        for (labels, value) in sums {
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Writes a family of values that go up and down; of samples of the same labels the last counts.
    pub fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> Result<(), Error> {
        self.values(name, help, None, samples)
    }

    /// The same of seconds.
    pub fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> Result<(), Error> {
        self.values(name, help, Some(&Unit::Seconds), samples)
    }

    fn values<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> Result<(), Error> {
        let last: BTreeMap<_, f64> = samples.into_iter().collect();
        let mut metric = self
            .0
            .encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in last {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
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
