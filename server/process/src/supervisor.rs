//! Messages to the service manager that started the server, by the protocol of systemd's `sd_notify`: the server is
//! ready, it works, it stops. Nothing is sent without `NOTIFY_SOCKET`.

use std::{
    convert::Infallible,
    env,
    ffi::OsStr,
    future::pending,
    io,
    os::unix::net::{SocketAddr, UnixDatagram},
    time::Duration,
};

use parcelo_store::Store;
use tokio::time::sleep;

/// Maximum time that a message waits for a service manager that reads none.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause before a writer with a full queue is asked again.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// The service manager, if it wants to hear of the server.
pub(super) struct Supervisor {
    /// This end, and the address of the other. It stays open, so that a server without a free descriptor is not taken
    /// for a stuck one.
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Interval at which the watchdog is fed, if there is one.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the service manager that the environment names.
    pub(super) fn from_env() -> Self {
        let none = Self { socket: None, watchdog: None };
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return none };
        let timeout = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse::<u64>().ok());
        let timeout = timeout.filter(|timeout| *timeout > 0).map(Duration::from_micros);
        Self::connect(&name, timeout).unwrap_or_else(|error| {
            tracing::warn!(%error, "NOTIFY_SOCKET cannot be used");
            none
        })
    }

    fn connect(name: &OsStr, watchdog_timeout: Option<Duration>) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        let watchdog = watchdog_timeout.map(|timeout| timeout / 2);
        Ok(Self { socket: Some((socket, address(name)?)), watchdog })
    }

    /// Sends a message, such as `READY=1`.
    pub(super) fn notify(&self, message: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::warn!(%error, message, "the service manager takes no message");
        }
    }

    /// Feeds the watchdog for as long as the store's writer answers.
    pub(super) async fn feed_watchdog(&self, store: &Store) -> Infallible {
        let Some(interval) = self.watchdog else { return pending().await };
        loop {
            if store.writer_answers().await {
                self.notify("WATCHDOG=1");
                sleep(interval).await;
            } else {
                sleep(BUSY_PAUSE).await;
            }
        }
    }
}

/// Returns the address of a socket: a path, or after an `@` a name that is in no folder.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::{linux::net::SocketAddrExt, unix::ffi::OsStrExt};
        if let Some(name) = name.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(name)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use parcelo_domain::Millis;
    use parcelo_store::test_util::hold_write_lock;

    use super::*;
    use crate::waiting::until;

    /// Returns the next message, if there is one.
    fn received(socket: &UnixDatagram) -> Option<String> {
        socket.set_nonblocking(true).unwrap();
        let mut message = [0; 64];
        let length = socket.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    #[test]
    fn a_socket_is_a_path_or_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let mut names = vec![path.clone().into_os_string()];
        if cfg!(target_os = "linux") {
            // Unique, because abstract names are the whole machine's.
            names.push(format!("@{}", path.display()).into());
        }
        for name in names {
            let socket = UnixDatagram::bind_addr(&address(&name).unwrap()).unwrap();
            Supervisor::connect(&name, None).unwrap().notify("READY=1");
            assert_eq!(received(&socket).as_deref(), Some("READY=1"), "{}", name.display());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_only_while_the_writer_answers() {
        let folder = tempfile::tempdir().unwrap();
        let [name, file] = ["notify", "parcelo.db"].map(|name| folder.path().join(name));
        let (socket, store) =
            (UnixDatagram::bind(&name).unwrap(), Store::open(&file, [1; 32]).unwrap());
        let timeout = Duration::from_secs(60);
        let supervisor = Supervisor::connect(name.as_os_str(), Some(timeout)).unwrap();
        let command = hold_write_lock(&file);
        let write = store.account("default", "acc_1".to_owned(), Millis(1));
        assert!(write.now_or_never().is_none(), "the writer waits for the command");
        let fed = tokio::time::timeout(timeout * 10, supervisor.feed_watchdog(&store)).await;
        assert!(fed.is_err());
        assert_eq!(received(&socket), None);
        command.execute_batch("ROLLBACK").unwrap();
        tokio::select! {
            never = supervisor.feed_watchdog(&store) => match never {},
            () = until("it is fed", async || received(&socket).as_deref() == Some("WATCHDOG=1")) => {}
        }
    }
}
