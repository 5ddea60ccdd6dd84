use std::time::{Duration, Instant};

use millrace_dataplane::classes::away::CopyCounts;
use millrace_peer::Figures;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use super::super::super::cluster::Listed;
use super::*;

/// A machine after so many seconds of a steady load.
fn figures(number: u64, seconds: u64) -> Figures {
    let read = seconds * (1_000_000 + number * 500_000);
    let mut figures = Figures {
        seconds: seconds as f64,
        version: 37,
        accepts: true,
        lease: Some(3.4),
        read,
        forwarded: read - read / 10,
        dropped: read / 10,
        reasons: [("no_flow", read / 10 - seconds), ("no_owner", seconds)]
            .map(|(reason, n)| (reason.to_owned(), n))
            .into(),
        ..Figures::default()
    };
    figures.peers.buckets = 171;
    (figures.peers.sent, figures.peers.received) = (read / 3, read / 3);
    figures.peers.copies = Some(CopyCounts {
        rows: seconds * 1000,
        delay_ns: 409_000,
        ..CopyCounts::default()
    });
    figures
}

fn seen(seconds: u64, begun: Instant) -> Seen {
    let machines = (1..=3).map(|number| {
        let listed = Listed {
            name: format!("edge-machine-{number}"),
            peer: format!("10.9.0.{number}:7100"),
            lease: true,
            alive: true,
            drained: false,
            leader: number == 3,
            buckets: Some(171),
            wanted: Some(171),
            copies: Some(171),
        };
        (listed, Ok(figures(number, seconds)))
    });
    Seen {
        name: "lab".to_owned(),
        version: 37,
        buckets: Some(512),
        unowned: 0,
        moving: 0,
        machines: machines.collect(),
        at: begun + Duration::from_secs(seconds),
    }
}

/// After two looks, of which the second one was changed.
fn after(change: impl FnOnce(&mut Seen)) -> AllApp {
    let begun = Instant::now();
    let mut app = AllApp::new(seen(2, begun));
    let mut now = seen(4, begun);
    change(&mut now);
    app.answer(Ok(now));
    app
}

fn drawn(app: &mut AllApp, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame)).unwrap();
    terminal.backend().clone()
}

#[test]
fn a_narrow_screen_has_all_columns() {
    let mut app = after(|_| ());
    insta::assert_snapshot!(drawn(&mut app, 80, 44));
}

#[test]
fn a_wide_screen_has_each_table_in_one_block() {
    let mut app = after(|_| ());
    insta::assert_snapshot!(drawn(&mut app, 160, 40));
}

#[test]
fn machines_that_are_silent_and_gone() {
    let mut app = after(|seen| {
        let [(_, silent), (gone, nothing), _] = &mut seen.machines[..] else {
            return;
        };
        *silent = Err("it is not there: Connection refused (os error 111)".to_owned());
        (gone.lease, gone.alive, gone.buckets, gone.wanted) = (false, false, Some(0), Some(0));
        *nothing = Err("it has no lease".to_owned());
    });
    insta::assert_snapshot!(drawn(&mut app, 80, 24));
    // What stands there is old, and the last line says so.
    app.answer(Err("etcd at 10.0.0.9:2379 cannot be reached".to_owned()));
    for _ in 0..40 {
        app.key(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE));
    }
    insta::assert_snapshot!(drawn(&mut app, 80, 12));
}

#[test]
fn no_machines_and_no_room_are_no_trouble() {
    let mut app = after(|seen| seen.machines.clear());
    insta::assert_snapshot!(drawn(&mut app, 80, 6));
    let mut app = after(|_| ());
    drawn(&mut app, 1, 1);
    drawn(&mut app, 0, 0);
    drawn(&mut app, 12, 5);
}
