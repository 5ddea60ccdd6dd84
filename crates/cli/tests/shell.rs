//! The shell of `millrace ctl` at a terminal: completion, history, and leaving it.

use crate::common::live;
use crate::common::terminal;

use std::os::unix::fs::PermissionsExt;

use live::Live;
use terminal::Terminal;

#[test]
fn lines_are_completed_kept_and_done() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let terminal = Terminal::open();
    let before = terminal.modes();
    let state = dir.path().join("state");
    let open = || {
        let mut command = live.command(&["ctl"]);
        terminal.attach(&mut command);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", &state);
        command.spawn().unwrap()
    };
    let mut shell = open();
    terminal.until("Tab completes");
    // Each line is typed behind a prompt.
    let prompt = || terminal.until("blocklist");
    prompt();
    // A verb, and the name of a map, which the run is asked for: what was not typed can only be what was completed.
    terminal.press("map li\t\r");
    terminal.until("lpm_trie");
    prompt();
    terminal.press("map set blo\t 10.9.0.0/16 '{\"number\": 7, \"port\": 80}'\r");
    terminal.until("1 set, 0 deleted");
    prompt();
    // A key that is there.
    terminal.press("map get blocked 10.9\t\r");
    terminal.until("number");
    prompt();
    // Two at once: the second is typed while the first is done.
    terminal.press("nonsense\rstats\r");
    terminal.until("unrecognized");
    terminal.until("packets in");
    prompt();
    // ^C leaves a line, ^D the shell; the status is that of the line that failed.
    terminal.press("map clear blocked\u{3}");
    prompt();
    terminal.press("\u{4}");
    assert_eq!(shell.wait().unwrap().code(), Some(2));
    assert_eq!(terminal.modes(), before);
    let kept = state.join("millrace");
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let lines = std::fs::read_to_string(kept.join("ctl_history")).unwrap();
    assert!(lines.contains("map get blocked 10.9.0.0/16"), "{lines}");

    // The next shell has the lines of this one: two back is the look at the entry, which ^C has not cleared.
    let mut shell = open();
    terminal.until("Tab completes");
    prompt();
    for _ in 0..3 {
        terminal.press("\u{1b}[A");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    terminal.press("\r");
    terminal.until("number");
    terminal.press("quit\r");
    assert_eq!(shell.wait().unwrap().code(), Some(0));
    assert_eq!(terminal.modes(), before);
}
