use super::super::table::Key;
use super::*;
use millrace_dataplane::account::EntryAccount;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

/// Two workers, two functions, two ports, after so many seconds of a steady load.
fn stats(seconds: u64) -> Stats {
    let account = |worker: u64| {
        let packets = seconds * (1_000_000 + worker * 2_000_000);
        let drops = packets / 10;
        json!({
            "seconds": seconds, "read": packets, "dropped": drops,
            "reasons": {"no_flow": drops - seconds, "tx_full": seconds},
            "ports": [
                {"name": "lan", "read": packets, "read_bytes": packets * 100, "dropped": drops},
                {"name": "wan", "sent": packets - drops, "sent_bytes": (packets - drops) * 100},
            ],
            "workers": [{"worker": worker, "packets": packets, "bursts": packets / 32,
                         "seconds": packets as f64 * 50e-9}],
            "stages": [
                {"name": "firewall", "packets": packets, "bursts": packets / 32,
                 "seconds": packets as f64 * 20e-9},
                {"name": "nat", "packets": packets - drops, "bursts": packets / 32,
                 "seconds": packets as f64 * 30e-9},
            ],
            "queues": [{"name": "vnic:t.pcap", "worker": worker, "missed": seconds * 7}],
        })
    };
    let answer = json!({"name": "firewall+nat", "accounts": [account(0), account(1)]});
    serde_json::from_value(answer).unwrap()
}

fn press(app: &mut App, code: KeyCode) {
    app.key(KeyEvent::new(code, KeyModifiers::NONE));
}

fn drawn(app: &mut App, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame)).unwrap();
    terminal
}

#[test]
fn rates_are_differences_by_worker_port_function_and_reason() {
    let mut app = App::new(stats(2));
    app.answer(stats(4));
    insta::assert_snapshot!(drawn(&mut app, 112, 30).backend());
    let view = &app.view;
    assert!((view.packets_per_second - 4e6).abs() < 1.0, "{view:?}");
    assert!((view.workers[1].ns_per_packet - 50.0).abs() < 1e-6);
    // One and three million, and seven lost on the way to each.
    let share = 3_000_007.0 / 4_000_014.0;
    assert!((view.workers[1].share - share).abs() < 1e-9);
    assert!((view.imbalance - 2.0 * share).abs() < 1e-9);
    // Just below what is called uneven.
    assert!(table::summary(view).contains("dropped/s, 14 lost by ports/s, imbalance 1.50  (over"));
    assert!((view.functions[1].ns_per_packet - 30.0 / 0.9).abs() < 1e-6);
    assert!((view.queues[0].missed_per_second - 14.0).abs() < 1e-9);
}

#[test]
fn a_flood_is_named_by_its_entry() {
    let told = |flooded: f64| {
        let (before, mut now) = (stats(2), stats(4));
        for (account, share) in now.accounts.iter_mut().zip([0.02, flooded]) {
            account.entries = vec![EntryAccount {
                worker: account.worker().worker,
                port: "wan".into(),
                entry: 77,
                entries: 128,
                share,
            }];
        }
        let mut app = App::new(before);
        app.answer(now);
        app
    };
    let app = told(0.8);
    let shares: Vec<_> = app
        .view
        .entries
        .iter()
        .map(|e| (e.worker, e.share))
        .collect();
    // Of three quarters of all packets, and of one.
    let close = |a: f64, b: f64| (a - b).abs() < 1e-5;
    assert!(
        matches!(*shares, [(1, a), (0, b)] if close(a, 0.6) && close(b, 0.005)),
        "{shares:?}"
    );
    let text = table::text(&app.view, app.sort);
    let lines: Vec<_> = text
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .collect();
    let title = lines
        .iter()
        .position(|l| *l == ["Heaviest", "entries"])
        .unwrap();
    assert_eq!(lines[title + 2], ["wan", "77", "128", "1", "60.0"]);
    assert_eq!(lines[title + 3], ["wan", "77", "128", "0", "0.5"]);
    // The first line says it as soon as the workers are uneven: here they are just not.
    assert!(!text.contains("collide"));
    let mut view = app.view;
    view.imbalance = 1.6;
    let said = table::summary(&view);
    assert!(
        said.contains("collide on entry 77 of wan, worker 1 (60 % of all)"),
        "{said}"
    );
    // Many entries that are uneven by chance are no flood.
    let mut view = told(0.1).view;
    view.imbalance = 1.6;
    assert!(table::summary(&view).contains("collide on one worker"));
}

#[test]
fn keys_sort_pause_scroll_and_leave() {
    let mut app = App::new(stats(2));
    for _ in 0..3 {
        press(&mut app, KeyCode::Char('s'));
    }
    press(&mut app, KeyCode::Left);
    press(&mut app, KeyCode::Right);
    press(&mut app, KeyCode::Char(' '));
    assert_eq!(app.sort.key, Key::Cost);
    // Paused: what comes is not shown.
    app.answer(stats(400));
    assert!((app.view.seconds - 2.0).abs() < 1e-9);
    // Small: only a part is seen, and it does not scroll past its end.
    for _ in 0..40 {
        press(&mut app, KeyCode::PageDown);
    }
    insta::assert_snapshot!(drawn(&mut app, 70, 12).backend());
    press(&mut app, KeyCode::Char('p'));
    app.answer(stats(401));
    assert!((app.view.interval - 1.0).abs() < 1e-9);
    press(&mut app, KeyCode::Char('q'));
    assert!(app.over);
}

#[test]
fn sorting_puts_the_most_first_and_reverses() {
    let rows = |app: &App| {
        let tables = table::tables(&app.view, app.sort);
        let workers = tables.iter().find(|t| t.title == "Workers").unwrap();
        let first = |line: &String| line.split_whitespace().next().unwrap().to_owned();
        workers
            .lines()
            .iter()
            .skip(1)
            .map(first)
            .collect::<Vec<_>>()
    };
    let mut app = App::new(stats(2));
    assert_eq!(rows(&app), ["0", "1"]);
    app.sort.key = Key::Packets;
    assert_eq!(rows(&app), ["1", "0"]);
    press(&mut app, KeyCode::Char('r'));
    assert_eq!(rows(&app), ["0", "1"]);
}

#[test]
fn answers_of_another_run_or_of_nothing_are_no_trouble() {
    let mut app = App::new(Stats::default());
    drawn(&mut app, 80, 24);
    app.answer(stats(9));
    app.answer(stats(1));
    assert!(app.view.packets_per_second.abs() < 1e-9);
    app.answer(Stats::default());
    drawn(&mut app, 1, 1);
    drawn(&mut app, 0, 0);
}
