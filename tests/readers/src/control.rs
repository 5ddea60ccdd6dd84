//! The language of the control socket.

use std::sync::Arc;

use millrace_control::protocol;
use millrace_control::server::Conversation;
use millrace_dataplane::Mailbox;

/// Talks as one client does, line by line, to a function whose worker has not begun. Each line gets one
/// answer, in one line, whose error has a name.
pub fn run(data: &[u8]) {
    let mailbox = Arc::new(Mailbox::default());
    mailbox.close();
    let mut conversation = Conversation::new(Arc::new(super::map_file::exposed()), vec![mailbox]);
    for line in data.split_inclusive(|b| *b == b'\n').take(100) {
        if line.len() > protocol::MOST_REQUEST {
            return;
        }
        let (answer, over) = conversation.say(line);
        assert!(answer.ok.is_some() != answer.error.is_some(), "{answer:?}");
        if let Some(error) = &answer.error {
            assert!(!error.code.is_empty() && !error.what.is_empty());
        }
        let text = serde_json::to_string(&answer).unwrap_or_default();
        assert!(!text.is_empty() && !text.contains('\n'));
        if over {
            return;
        }
    }
}
