//! The sockets of `serve`: those that systemd passes (socket activation), and those that the server binds itself.

use std::{env, io, net::SocketAddr};

use listenfd::ListenFd;
use tokio::net::TcpListener;

use super::{Failure, serve_args::Serve, shared_args::EnvironmentArg};

/// The sockets, bound before any address is printed.
pub(super) struct BoundSockets {
    pub(super) production: Option<TcpListener>,
    pub(super) sandbox: Option<TcpListener>,
    pub(super) admin: TcpListener,
}

impl BoundSockets {
    /// Binds the sockets that were not passed. A passed socket takes the place of the address of its flag.
    pub(super) async fn bind(options: &Serve, mut passed: PassedSockets) -> Result<Self, Failure> {
        let serves = |environment| options.environments.contains(&environment);
        let production = if serves(EnvironmentArg::Production) {
            Some(passed.take_or_bind("production", options.listen).await?)
        } else {
            None
        };
        let sandbox = if serves(EnvironmentArg::Sandbox) {
            Some(passed.take_or_bind("sandbox", options.sandbox_listen).await?)
        } else {
            None
        };
        let admin = passed.take_or_bind("admin", options.admin_listen).await?;
        match passed.0.pop() {
            None => Ok(Self { production, sandbox, admin }),
            // Its clients would wait for ever.
            Some((name, _)) => Err(Failure::PassedSocket {
                name,
                reason: "FileDescriptorName= must be production, sandbox or admin, once each, and the server must serve it"
                    .to_owned(),
            }),
        }
    }
}

/// The sockets that systemd holds, with their names. While no server runs, connections wait in them for the next one.
pub(super) struct PassedSockets(Vec<(String, TcpListener)>);

impl PassedSockets {
    /// Takes the sockets that the environment announces. This comes before threads that read the environment, since it
    /// removes variables, so that child processes do not take the sockets for theirs.
    pub(super) fn from_env() -> Result<Self, Failure> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let (mut names, mut passed) = (names.split(':'), ListenFd::from_env());
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default().to_owned();
            match take(&mut passed, index) {
                Ok(socket) => sockets.extend(socket.map(|socket| (name, socket))),
                Err(error) => {
                    return Err(Failure::PassedSocket { name, reason: error.to_string() });
                }
            }
        }
        Ok(Self(sockets))
    }

    async fn take_or_bind(
        &mut self,
        name: &str,
        address: SocketAddr,
    ) -> Result<TcpListener, Failure> {
        if let Some(index) = self.0.iter().position(|(passed, _)| passed == name) {
            return Ok(self.0.swap_remove(index).1);
        }
        TcpListener::bind(address).await.map_err(|source| Failure::Listen { address, source })
    }
}

fn take(passed: &mut ListenFd, index: usize) -> io::Result<Option<TcpListener>> {
    let Some(socket) = passed.take_tcp_listener(index)? else { return Ok(None) };
    // It would be accepted from without end, and each time fail. Other systems have no systemd.
    #[cfg(target_os = "linux")]
    if !rustix::net::sockopt::socket_acceptconn(&socket)? {
        return Err(io::Error::other(
            "it does not listen; its unit must have ListenStream=, and not Accept=yes",
        ));
    }
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket).map(Some)
}
