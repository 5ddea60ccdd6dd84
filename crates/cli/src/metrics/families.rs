//! An account as families of metrics.

use std::fmt::Error;
use std::sync::Arc;

use millrace_dataplane::account::{Account, EntryAccount, PortAccount};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The account in the text format of OpenMetrics.
pub fn text(account: &Account) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("millrace");
    registry.register_collector(Box::new(Counted(Arc::new(account.clone()))));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Counted(Arc<Account>);

/// One value of a family: its labels, and what was counted.
struct Sample<'a, const N: usize>([(&'static str, &'a str); N], u64);

fn family<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &'static str,
    help: &str,
    samples: &[Sample<'_, N>],
) -> Result<(), Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for Sample(labels, value) in samples {
        ConstCounter::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

/// The same of values that go up and down.
fn gauges<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &'static str,
    help: &str,
    samples: &[([(&'static str, &str); N], f64)],
) -> Result<(), Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        ConstGauge::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let account = &self.0;
        ports(&mut encoder, &account.ports)?;
        let reasons: Vec<_> = account
            .reasons
            .iter()
            .map(|(reason, count)| Sample([("reason", reason.as_str())], *count))
            .collect();
        family(
            &mut encoder,
            "drops",
            "Packets dropped or aborted, by reason",
            &reasons,
        )?;
        let numbers: Vec<String> = account
            .workers
            .iter()
            .map(|w| w.worker.to_string())
            .collect();
        let workers = || account.workers.iter().zip(&numbers);
        let packets: Vec<_> = workers()
            .map(|(w, n)| Sample([("worker", n.as_str())], w.packets))
            .collect();
        family(
            &mut encoder,
            "worker_packets",
            "Packets that a worker ran over",
            &packets,
        )?;
        let bursts: Vec<_> = workers()
            .map(|(w, n)| Sample([("worker", n.as_str())], w.bursts))
            .collect();
        family(
            &mut encoder,
            "worker_bursts",
            "Bursts that a worker ran",
            &bursts,
        )?;
        let missed = |worker: u32| -> u64 {
            let own = account.queues.iter().filter(|q| q.worker == worker);
            own.map(|q| q.missed).sum()
        };
        let came: Vec<_> = workers()
            .map(|(w, n)| Sample([("worker", n.as_str())], w.packets + missed(w.worker)))
            .collect();
        family(
            &mut encoder,
            "worker_offered_packets",
            "Packets that came to a worker, whether it ran over them or its ports lost them",
            &came,
        )?;
        entries(&mut encoder, account)?;
        let stages = || account.stages.iter();
        let packets: Vec<_> = stages()
            .map(|s| Sample([("function", s.name.as_str())], s.packets))
            .collect();
        family(
            &mut encoder,
            "function_packets",
            "Packets that went through a function",
            &packets,
        )?;
        let time: Vec<_> = stages()
            .map(|s| Sample([("function", s.name.as_str())], (s.seconds * 1e9) as u64))
            .collect();
        family(
            &mut encoder,
            "function_nanoseconds",
            "Time inside a function, over all workers",
            &time,
        )?;
        queues(&mut encoder, account)
    }
}

fn ports(encoder: &mut DescriptorEncoder<'_>, ports: &[PortAccount]) -> Result<(), Error> {
    let fates: Vec<_> = ports
        .iter()
        .flat_map(|p| {
            let fates = [
                ("forwarded", p.forwarded),
                ("dropped", p.dropped),
                ("passed", p.passed),
                ("consumed", p.consumed),
                ("aborted", p.aborted),
            ];
            fates.map(|(fate, count)| Sample([("port", p.name.as_str()), ("fate", fate)], count))
        })
        .collect();
    family(
        encoder,
        "packets",
        "Packets that came in, by port and fate",
        &fates,
    )?;
    let by = |what: fn(&PortAccount) -> u64| -> Vec<_> {
        let samples = ports
            .iter()
            .map(|p| Sample([("port", p.name.as_str())], what(p)));
        samples.collect()
    };
    family(
        encoder,
        "received_packets",
        "Packets that came in",
        &by(|p| p.read),
    )?;
    family(
        encoder,
        "received_bytes",
        "Bytes that came in",
        &by(|p| p.read_bytes),
    )?;
    family(
        encoder,
        "sent_packets",
        "Packets that left",
        &by(|p| p.sent),
    )?;
    family(
        encoder,
        "sent_bytes",
        "Bytes that left",
        &by(|p| p.sent_bytes),
    )
}

/// The entry itself is a value and no label: a label that changes makes a new series each time.
fn entries(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let numbers = account.entries.iter().map(|e| e.worker.to_string());
    let numbers: Vec<String> = numbers.collect();
    let of = |value: fn(&EntryAccount) -> f64| -> Vec<_> {
        let all = account.entries.iter().zip(&numbers);
        all.map(|(e, n)| {
            (
                [("worker", n.as_str()), ("port", e.port.as_str())],
                value(e),
            )
        })
        .collect()
    };
    gauges(
        encoder,
        "worker_heaviest_entry",
        "The entry of the port's indirection table under which most packets of a worker came in the last second",
        &of(|e| f64::from(e.entry)),
    )?;
    gauges(
        encoder,
        "worker_heaviest_entry_share",
        "Its part of the worker's packets, 0 to 1, by sampling",
        &of(|e| e.share),
    )
}

fn queues(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let numbers: Vec<String> = account
        .queues
        .iter()
        .map(|q| q.worker.to_string())
        .collect();
    let samples: Vec<_> = account
        .queues
        .iter()
        .zip(&numbers)
        .flat_map(|(q, worker)| {
            let losses = [
                ("missed", q.missed),
                ("unfit", q.unfit),
                ("failed", q.failed),
                ("discarded", q.discarded),
            ];
            losses.map(|(why, count)| {
                Sample(
                    [
                        ("queue", q.name.as_str()),
                        ("worker", worker.as_str()),
                        ("why", why),
                    ],
                    count,
                )
            })
        })
        .collect();
    family(
        encoder,
        "queue_losses",
        "Packets that a port lost before a worker saw them, or that did not leave",
        &samples,
    )
}
