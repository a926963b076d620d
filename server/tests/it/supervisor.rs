//! What systemd hears from the server that it started.

use std::{iter, os::unix::net::UnixDatagram};

use crate::{running::TestSetup, waiting::LONG};

#[test]
fn systemd_hears_that_the_server_is_ready_works_and_stops() {
    let setup = TestSetup::new();
    let name = setup.path("notify");
    let socket = UnixDatagram::bind(&name).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut messages = iter::repeat_with(|| {
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    });
    let variables = [("NOTIFY_SOCKET", name.to_str().unwrap()), ("WATCHDOG_USEC", "20000")];
    let mut running = setup.start_with(&variables, &[]);
    assert!(messages.by_ref().take(3).eq(["READY=1", "WATCHDOG=1", "WATCHDOG=1"]));
    running.signal("-INT");
    assert_eq!(messages.find(|message| message != "WATCHDOG=1").unwrap(), "STOPPING=1");
    assert_eq!(running.wait(), Some(0), "{}", setup.output());
}
