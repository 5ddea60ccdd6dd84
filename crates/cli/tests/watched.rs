//! What an operator sees of a run while it lasts: guests that fail, and metrics through changes of the chain.

use crate::common;
use crate::common::live;
use crate::common::openmetrics::{self, Scrape};
use crate::common::stream;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use common::output;
use live::{LONG, Live};
use serde_json::{Value, json};
use stream::{Stream, receiver};

/// What a run has written on standard error so far, once this is in it so often.
fn said(folder: &Path, part: &str, times: usize) -> String {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(folder.join("stderr")).unwrap();
        if text.matches(part).count() >= times {
            return text;
        }
        assert!(began.elapsed() < LONG, "no `{part}` in: {text}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Where a run that was started with `--metrics 0` answers scrapes.
fn metrics(folder: &Path) -> String {
    let text = said(folder, "/metrics", 1);
    let address = text.split("http://").nth(1).unwrap();
    address.split('/').next().unwrap().to_owned()
}

/// Scrapes until it is so.
fn scraped(address: &str, enough: impl Fn(&Scrape) -> bool) -> Scrape {
    let began = Instant::now();
    let mut scrape = Scrape::of(address, None);
    while !enough(&scrape) {
        assert!(began.elapsed() < LONG, "{}", scrape.text);
        common::pause();
        scrape = Scrape::of(address, Some(&scrape));
    }
    scrape
}

/// It fails twice, is started again once, and packets go on: all who look see it while the run lasts.
#[test]
fn a_guest_that_is_killed_in_mid_run_is_seen_everywhere_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let guest = format!("guest,restart=1:{} signal", receiver(dir.path()).display());
    let words = ["--in", "-", "--out", "null:", "--metrics", "0"];
    let mut live = Live::of(dir.path(), &["nop", &guest, "nop"], &words);
    let stream = Stream::into(&mut live);
    let address = metrics(dir.path());

    let stats = live.until(|s| s["stages"][1]["guests"][0]["failures"] == 2);
    let told = &stats["stages"][1]["guests"][0];
    assert_eq!(told["state"], "failed", "{told}");
    assert_eq!(told["restarts"], 1, "{told}");
    assert_eq!(told["last_failure"]["cause"], "SIGKILL", "{told}");
    let error = told["last_failure"]["error"].as_str().unwrap();
    assert!(error.contains("signal 9, in /"), "{error}");
    assert!(stats["stages"][0].get("guests").is_none(), "{stats}");

    // On standard error, each of them at its time.
    let text = said(
        dir.path(),
        "receiver: failed: it sent itself signal 9, in",
        2,
    );
    let failed: Vec<_> = text
        .lines()
        .filter(|l| l.starts_with("warning: receiver: failed"))
        .collect();
    assert_eq!(failed.len(), 2, "{text}");
    assert!(failed[0].contains("started again"), "{text}");
    assert!(text.contains("note: receiver: started again"), "{text}");

    let guests = live.ask(&["ctl", "guests"]);
    let own = &guests["guests"][0];
    assert_eq!(
        (&own["element"], &own["name"]),
        (&json!("receiver"), &json!("receiver"))
    );
    assert_eq!(
        (&own["state"], &own["failures"]),
        (&json!("failed"), &json!(2))
    );
    let chain = live.ask(&["ctl", "chain", "show"]);
    let own = &chain["elements"][1]["guests"][0];
    assert_eq!(own["last_failure"]["error"], error, "{chain}");
    assert_eq!(chain["elements"][0]["guests"], json!([]), "{chain}");
    let view = live.ask(&["top", "--every", "0.2"]);
    let own = &view["guests"][0];
    assert_eq!(
        (&own["name"], &own["state"]),
        (&json!("receiver"), &json!("failed"))
    );
    assert_eq!(own["last_failure"]["error"], error, "{view}");
    for words in [
        &["ctl", "guests"][..],
        &["ctl", "chain", "show"],
        &["ctl", "stats"],
        &["top", "--once", "--every", "0.2"],
    ] {
        let (done, _) = output(&mut live.command(words));
        let text = String::from_utf8(done.stdout).unwrap();
        for part in ["failed", "signal 9"] {
            assert!(text.contains(part), "{words:?}: no {part} in {text}");
        }
    }

    let own = "function=\"receiver\"";
    let scrape = scraped(&address, |s| s.value("guest_failures_total", &[own]) == 2.0);
    assert_eq!(scrape.value("guest_restarts_total", &[own]), 1.0);
    assert_eq!(scrape.value("guest_state", &[own, "state=\"failed\""]), 1.0);
    assert_eq!(
        scrape.value("guest_state", &[own, "state=\"running\""]),
        0.0
    );
    assert!(scrape.value("guest_missed_packets_total", &[own, "passed"]) > 0.0);
    assert!(scrape.value("guest_last_failure_time_seconds", &[own, "SIGKILL"]) > 1e9);

    let sent = stream.end();
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["forwarded"]),
        (2, &json!(sent)),
        "{account}"
    );
}

/// Every scrape is one that a strict reader takes, and no counter goes back, while elements come and go.
#[test]
fn scrapes_are_sound_through_changes_of_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["--in", "-", "--out", "null:", "--metrics", "0"];
    let mut live = Live::of(dir.path(), &["nop", "nop"], &words);
    let stream = Stream::into(&mut live);
    let address = metrics(dir.path());
    let mut last = scraped(&address, |s| s.has("function_packets_total", "nop-2"));
    let guest = format!("guest:{} drop", receiver(dir.path()).display());
    for words in [
        &["replace", "nop", "nop"][..],
        &["attach", &guest, "--name", "tap", "--after", "nop"],
        &["replace", "nop", "nop"],
        &["detach", "tap"],
        &["attach", &guest, "--name", "tap"],
        &["replace", "tap", "nop", "--name", "tap"],
        &["detach", "nop-2"],
        &["replace", "nop", "nop", "--name", "x"],
    ] {
        stream.more(200);
        live.ask(&[&["ctl", "chain"], words].concat());
        for _ in 0..3 {
            last = Scrape::of(&address, Some(&last));
            stream.more(50);
        }
    }
    // Packets of an element of the same name before it are in the same series.
    let before = last.value("function_packets_total", &["function=\"nop\""]);
    assert!(before > 400.0, "{}", last.text);
    assert!(last.value("drops_total", &["function=\"tap\"", "by_guest"]) > 0.0);
    assert_eq!(last.value("build_info", &[env!("CARGO_PKG_VERSION")]), 1.0);
    assert!(last.value("uptime_seconds", &[]) > 0.0);
    stream.end();
    let (account, _) = live.end();
    assert!(account["read"].as_u64() > Some(1000), "{account}");
}

/// The reader refuses what a strict one refuses: a check that takes everything is none.
#[test]
fn the_reader_of_scrapes_is_strict() {
    let good =
        "# HELP a Help.\n# TYPE a counter\na_total{x=\"\\\"1\"} 1\na_total{x=\"2\"} 1\n# EOF\n";
    assert_eq!(openmetrics::parse(good).values.len(), 2);
    for (from, to) in [
        ("# EOF\n", ""),
        ("x=\"2\"", "x=\"\\\"1\""),
        ("a_total{x=\"2\"}", "a{x=\"2\"}"),
        (
            "a_total{x=\"2\"} 1\n",
            "a_total{x=\"2\"} 1\n# TYPE a counter\n",
        ),
        ("# TYPE a counter\n", "# TYPE a counter\n# TYPE a counter\n"),
        ("# HELP a Help.\n", ""),
        ("# TYPE a counter\n", "# TYPE a counter\n# UNIT a seconds\n"),
        ("x=\"2\"} 1", "x=\"2\"} NaN"),
        ("x=\"2\"", "x=\"2\",x=\"3\""),
        (
            "# EOF\n",
            "# HELP b H.\n# TYPE b gauge\nb 1\n# HELP a H.\n# EOF\n",
        ),
    ] {
        let wrong = good.replace(from, to);
        assert_ne!(wrong, good);
        let taken = std::panic::catch_unwind(|| openmetrics::parse(&wrong));
        assert!(taken.is_err(), "{wrong}");
    }
}

/// A terminal that goes away ends a run as SIGTERM does: with its account. A second hang-up changes nothing.
#[test]
fn a_hang_up_drains_and_accounts() {
    // Under nohup it goes on, as it should, and the tests' own processes inherit that.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    if u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap() & 1 == 1 {
        println!("skipped: a hang-up, which is ignored where these tests were started");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let port = "vnic:captures/talk.pcap?rate=2k&measure=off";
    let words = ["--ports", port, "--packets", "300000000", "--seconds", "60"];
    let live = Live::of(dir.path(), &["nop", "nop"], &words);
    live.until(|s| s["read"].as_u64() > Some(100));
    let pid = live.child.id().to_string();
    for _ in 0..2 {
        let sent = Command::new("kill").args(["-s", "HUP", &pid]).status();
        assert!(sent.unwrap().success());
    }
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["interrupted"]),
        (0, &json!(true)),
        "{account}"
    );
    assert!(account["read"].as_u64() > Some(100), "{account}");
    assert_eq!(account["lost"]["failed"], 0, "{account}");
}

/// Also of one that comes into the chain later, and as documents where messages are.
#[test]
fn what_guests_print_has_the_name_of_their_element() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display();
    let guest = format!("guest,dir={folder}:{} ask", receiver(dir.path()).display());
    let port = "vnic:captures/talk.pcap?rate=2k&measure=off";
    let words = ["--ports", port, "--packets", "300000000", "--seconds", "60"];
    let live = Live::of(dir.path(), &["nop", &guest], &words);
    said(dir.path(), "\nreceiver: unknown ", 1);
    live.ask(&["ctl", "chain", "attach", &guest, "--name", "tap"]);
    let text = said(dir.path(), "\ntap: unknown ", 1);
    let bare = text.lines().filter(|l| l.starts_with("unknown"));
    assert_eq!(bare.count(), 0, "{text}");
    said(dir.path(), "note: the chain is nop - receiver - tap now", 1);
    live.ask(&["ctl", "stop"]);
    let (account, _) = live.end();
    // What is printed at the end is not lost.
    let text = said(dir.path(), " packets, sum ", 2);
    assert!(
        text.contains("\nreceiver: ") && text.contains("\ntap: "),
        "{text} {account}"
    );

    let words = [&words[..], &["--log-format", "json"]].concat();
    let live = Live::of(dir.path(), &["nop", &guest], &words);
    let text = said(dir.path(), "\"message\":\"unknown ", 1);
    let line = text.lines().find(|l| l.contains("\"unknown ")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let members = [&line["element"], &line["level"], &line["stream"]];
    assert_eq!(
        members,
        [&json!("receiver"), &json!("info"), &json!("stdout")]
    );
    drop(live);
}

/// Every line is a document, with the errors at the end; the level leaves out what is less grave.
#[test]
fn messages_are_documents_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let guest = format!("guest:{} null", receiver(dir.path()).display());
    let lines = |level: &str| -> Vec<Value> {
        let mut run = common::millrace();
        run.args(["run", "nop", &guest, "--in", "captures/talk.pcap", "--json"])
            .args(["--log-format", "json", "--log-level", level]);
        let (done, said) = output(&mut run);
        assert_eq!(done.status.code(), Some(2), "{said}");
        let each = said
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}")));
        each.collect()
    };
    let all = lines("debug");
    let of = |level: &str| all.iter().filter(|l| l["level"] == level).count();
    assert!(of("info") >= 2 && of("error") == 1, "{all:?}");
    for line in &all {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        assert!(
            line["message"].as_str().is_some_and(|m| !m.is_empty()),
            "{line}"
        );
    }
    let grave = lines("error");
    assert_eq!(grave.len(), 1, "{grave:?}");
    assert!(
        grave[0]["message"]
            .as_str()
            .unwrap()
            .contains("a null pointer"),
        "{grave:?}"
    );
    assert!(grave[0]["help"].as_str().is_some(), "{grave:?}");
    // What is no run is refused in the same form.
    let mut run = common::millrace();
    run.args(common::words(
        "run no-such-function --in x.pcap --log-format json",
    ));
    let (_, said) = output(&mut run);
    let refused: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(refused["level"], "error", "{said}");
}

/// docs/grafana: rules that Prometheus takes, and no metric in them that there is not.
#[test]
fn the_dashboard_and_the_alerts_are_about_metrics_that_there_are() {
    let folder = common::root().join("docs/grafana");
    let rules = folder.join("alerts.yml");
    openmetrics::promtool(&["check", "rules", rules.to_str().unwrap()], "");
    let dashboard = std::fs::read_to_string(folder.join("dashboard.json")).unwrap();
    let document: Value = serde_json::from_str(&dashboard).unwrap();
    let mut expressions = vec![std::fs::read_to_string(rules).unwrap()];
    for panel in document["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            expressions.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    // What a run with a guest that has failed tells.
    let dir = tempfile::tempdir().unwrap();
    let guest = format!("guest:{} null", receiver(dir.path()).display());
    let port = "vnic:captures/talk.pcap?rate=2k&measure=off";
    let words = format!("--ports {port} --seconds 60 --packets 300000000 --metrics 0");
    let words = common::words(&words);
    let live = Live::of(dir.path(), &["nop", &guest], &words);
    let address = metrics(dir.path());
    let scrape = scraped(&address, |s| {
        s.has("guest_last_failure_time_seconds", "SIGSEGV")
    });
    let mut seen = 0;
    for text in &expressions {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if word.starts_with("millrace_") {
                seen += 1;
                let family = word.strip_suffix("_total").unwrap_or(word);
                let kind = format!("# TYPE {family} ");
                assert!(scrape.text.contains(&kind), "{word} in {text}");
            }
        }
    }
    assert!(seen > 15, "{seen} names: too few are seen");
    drop(live);
}

/// A table that is full says so while the run lasts; what is taken and refused is kept, and counted by nobody.
#[test]
fn a_table_that_is_full_shows_in_metrics_and_stats() {
    let dir = tempfile::tempdir().unwrap();
    let function = stream::counter(dir.path(), "count.c", 100, "__u64");
    let words = ["--in", "-", "--out", "null:", "--metrics", "0"];
    let mut live = Live::of(dir.path(), &["nop", &function], &words);
    let stream = Stream::into(&mut live);
    let address = metrics(dir.path());
    let own = "object=\"sources\"";
    let refused = |s: &Scrape| {
        s.has("object_refusals_total", own) && s.value("object_refusals_total", &[own]) > 0.0
    };
    let scrape = scraped(&address, refused);
    assert_eq!(scrape.value("object_capacity", &[own]), 100.0);
    assert_eq!(scrape.value("object_entries", &[own]), 100.0);
    let stats = live.stats();
    let table = &stats["stages"][1]["tables"][0];
    assert_eq!(
        (&table["used"], &table["capacity"]),
        (&json!(100), &json!(100)),
        "{table}"
    );
    assert!(table["refused"].as_u64() > Some(0), "{table}");
    // Its successor begins at nothing, but what was refused goes on.
    live.ask(&["ctl", "chain", "replace", "count", &function, "--anew"]);
    let after = Scrape::of(&address, Some(&scrape));
    let after = scraped(&address, |s| {
        s.value("object_entries", &[own]) == 100.0
            && s.value("object_refusals_total", &[own])
                > after.value("object_refusals_total", &[own])
    });
    Scrape::of(&address, Some(&after));
    stream.end();
    live.end();
}
