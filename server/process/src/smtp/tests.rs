//! Tests the transport against a small relay that accepts, refuses or hangs up as a test requires.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

use super::*;
use crate::smtp::message;

/// An unusual response of the relay. A test names the beginning of the line that gets it; `<message>` is the final dot,
/// and `<greeting>` the start of the connection.
#[derive(Clone, Copy)]
enum Answer {
    Reply(&'static str),
    HangUp,
    Silence,
}

struct Relay {
    port: u16,
    lines: mpsc::UnboundedReceiver<String>,
}

#[derive(Clone, Default)]
struct Behaviour {
    special: Option<(&'static str, Answer)>,
    /// `true` if only the first connection gets the unusual response.
    once: bool,
    tls: Option<Arc<ServerConfig>>,
    tls_at_once: bool,
}

impl Relay {
    async fn start(behaviour: Behaviour) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let (received, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut behaviour = behaviour;
            while let Ok((stream, _)) = socket.accept().await {
                let _ = received.send("<connected>".to_owned());
                tokio::spawn(serve(stream, behaviour.clone(), received.clone()));
                if behaviour.once {
                    behaviour.special = None;
                }
            }
        });
        Self { port, lines }
    }

    async fn with_reply_to(at: &'static str, answer: Answer) -> Self {
        Self::start(Behaviour { special: Some((at, answer)), ..Behaviour::default() }).await
    }

    fn transport(&self) -> SmtpTransport {
        SmtpTransport::new(settings(self.port, ConnectionSecurity::Loopback, None)).unwrap()
    }

    fn received_lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }
}

fn settings(port: u16, security: ConnectionSecurity, login: Option<(&str, &str)>) -> SmtpSettings {
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let from = "Shop <parcels@shop.example>".parse().unwrap();
    SmtpSettings { host: "localhost".to_owned(), port, security, login, from }
}

async fn serve(stream: TcpStream, behaviour: Behaviour, received: mpsc::UnboundedSender<String>) {
    if behaviour.tls_at_once {
        let acceptor = TlsAcceptor::from(behaviour.tls.clone().unwrap());
        if let Ok(stream) = acceptor.accept(stream).await {
            serve_session(stream, &behaviour, &received, true).await;
        }
        return;
    }
    let Some(stream) = serve_session(stream, &behaviour, &received, true).await else { return };
    let acceptor = TlsAcceptor::from(behaviour.tls.clone().unwrap());
    if let Ok(stream) = acceptor.accept(stream).await {
        serve_session(stream, &Behaviour { tls: None, ..behaviour }, &received, false).await;
    }
}

/// Serves commands until the client disconnects; returns the stream if the client asks for TLS.
async fn serve_session<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    behaviour: &Behaviour,
    received: &mpsc::UnboundedSender<String>,
    greets: bool,
) -> Option<S> {
    let mut stream = BufReader::new(stream);
    if greets {
        answer(&mut stream, behaviour, "<greeting>", "220 relay.test").await?;
    }
    let mut in_message = false;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        let _ = received.send(line.clone());
        if in_message {
            if line == "." {
                in_message = false;
                answer(&mut stream, behaviour, "<message>", "250 2.0.0 taken").await?;
            }
            continue;
        }
        let features = match (&behaviour.tls, behaviour.tls_at_once) {
            (Some(_), false) => "250-relay.test\r\n250 STARTTLS",
            _ => "250-relay.test\r\n250 AUTH PLAIN LOGIN",
        };
        let usual = match line.split(' ').next().unwrap_or_default() {
            "EHLO" => features,
            "DATA" => "354 go on",
            "AUTH" => "235 welcome",
            "STARTTLS" => "220 go on",
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        let is_usual = answer(&mut stream, behaviour, &line, usual).await?;
        in_message = line == "DATA" && is_usual;
        if line == "STARTTLS" {
            return Some(stream.into_inner());
        }
    }
}

/// Responds to a line. Returns `true` if the response was the usual one, and `None` if the connection ends.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    behaviour: &Behaviour,
    at: &str,
    usual: &str,
) -> Option<bool> {
    let odd = behaviour.special.filter(|(start, _)| at.starts_with(start));
    let reply = match odd {
        Some((_, Answer::HangUp)) => return None,
        Some((_, Answer::Silence)) => std::future::pending().await,
        Some((_, Answer::Reply(reply))) => reply,
        None => usual,
    };
    stream.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
    Some(odd.is_none())
}

fn mail(to: &str) -> Mail {
    Mail { text: ".\nA dot alone ends nothing.\n".to_owned(), ..message::tests::mail(to) }
}

#[tokio::test]
async fn a_connection_is_reused_for_the_next_e_mail() {
    let mut relay = Relay::start(Behaviour::default()).await;
    let transport = relay.transport();
    for to in ["luis@example.org", "ana@example.org"] {
        assert_eq!(transport.deliver(&mail(to)).await, Ok(()));
    }
    transport.close_idle().await;
    let lines = relay.received_lines();
    let count = |line: &str| lines.iter().filter(|known| *known == line).count();
    assert_eq!((count("<connected>"), count("EHLO shop.example")), (1, 1), "{lines:#?}");
    assert_eq!(count("MAIL FROM:<parcels@shop.example>"), 2);
    assert_eq!((count("RCPT TO:<luis@example.org>"), count("RCPT TO:<ana@example.org>")), (1, 1));
    assert_eq!(
        (count("Message-ID: <01J0000000000000000000000A@shop.example>"), count("..")),
        (2, 2)
    );
    assert_eq!(lines.last().unwrap(), "QUIT");
}

#[tokio::test]
async fn a_refusal_names_its_command_and_keeps_the_connection() {
    use SmtpStage::{Connect, Data, Message, Recipient, Sender};
    let table = [
        ("<greeting>", "554 no", Connect, 554),
        ("<greeting>", "421 busy", Connect, 421),
        ("EHLO", "550 no", Connect, 550),
        ("MAIL", "550 5.1.8 no", Sender, 550),
        ("MAIL", "452 full", Sender, 452),
        ("RCPT", "550 5.1.1 <luis@example.org> is unknown", Recipient, 550),
        ("RCPT", "451-greylisted\r\n451 later", Recipient, 451),
        ("DATA", "554 no", Data, 554),
        ("<message>", "552 too big", Message, 552),
        ("<message>", "450 later", Message, 450),
        ("<message>", "421 closing", Message, 421),
    ];
    for (at, reply, stage, code) in table {
        let relay = Relay::start(Behaviour {
            special: Some((at, Answer::Reply(reply))),
            once: true,
            ..Behaviour::default()
        });
        let transport = relay.await.transport();
        let error = transport.deliver(&mail("luis@example.org")).await.unwrap_err();
        assert!(
            matches!(error, SmtpError::Rejected(at, reply) if (at, reply.code) == (stage, code)),
            "{at} {reply}: {error}"
        );
        assert!(!format!("{error:?} {error} {transport:?}").contains("luis"));
    }
}

#[tokio::test]
async fn a_lost_connection_reports_the_stage() {
    use SmtpStage::{Connect, Data, Message, Recipient, Sender};
    let table = [
        ("<greeting>", Connect),
        ("EHLO", Connect),
        ("MAIL", Sender),
        ("RCPT", Recipient),
        ("DATA", Data),
        ("<message>", Message),
    ];
    for (at, stage) in table {
        let relay = Relay::with_reply_to(at, Answer::HangUp).await;
        let error = relay.transport().deliver(&mail("luis@example.org")).await;
        assert_eq!(error, Err(SmtpError::ConnectionLost(stage)), "{at}");
    }
    // A closed port.
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let transport = SmtpTransport::new(settings(free, ConnectionSecurity::Loopback, None)).unwrap();
    let error = transport.deliver(&mail("luis@example.org")).await;
    assert_eq!(error, Err(SmtpError::ConnectionLost(Connect)));
}

/// The paused clock advances to the next timer when nothing else can run.
#[tokio::test(start_paused = true)]
async fn a_silent_relay_times_out() {
    for (at, stage) in [("RCPT", SmtpStage::Recipient), ("<message>", SmtpStage::Message)] {
        let relay = Relay::with_reply_to(at, Answer::Silence).await;
        let error = relay.transport().deliver(&mail("luis@example.org")).await;
        assert_eq!(error, Err(SmtpError::ConnectionLost(stage)), "{at}");
    }
}

#[tokio::test]
async fn a_closed_idle_connection_is_replaced() {
    let behaviour =
        Behaviour { special: Some(("NOOP", Answer::HangUp)), once: true, ..Behaviour::default() };
    let mut relay = Relay::start(behaviour).await;
    let transport = relay.transport();
    for _ in 0..2 {
        assert_eq!(transport.deliver(&mail("luis@example.org")).await, Ok(()));
    }
    let connected = relay.received_lines().iter().filter(|line| *line == "<connected>").count();
    assert_eq!(connected, 2);
}

#[tokio::test]
async fn a_connection_is_kept_after_a_refused_recipient() {
    let mut relay =
        Relay::with_reply_to("RCPT TO:<gone@", Answer::Reply("550 5.1.1 unknown")).await;
    let transport = relay.transport();
    let error = transport.deliver(&mail("gone@example.org")).await;
    assert_eq!(error.map_err(SmtpError::outcome), Err(MailOutcome::Bounced));
    assert_eq!(transport.deliver(&mail("luis@example.org")).await, Ok(()));
    let lines = relay.received_lines();
    assert_eq!(lines.iter().filter(|line| *line == "<connected>").count(), 1, "{lines:#?}");
    assert!(lines.iter().any(|line| line == "RSET"), "{lines:#?}");
}

fn certificate() -> (Certificate, Arc<ServerConfig>) {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
    let chain = vec![generated.cert.der().clone()];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    (Certificate::from_der(generated.cert.der().to_vec()).unwrap(), Arc::new(config.unwrap()))
}

fn tls_trusting(certificate: Certificate) -> TlsParameters {
    let builder = TlsParameters::builder("localhost".to_owned());
    let builder = builder.certificate_store(CertificateStore::None);
    builder.add_root_certificate(certificate).build_rustls().unwrap()
}

#[tokio::test]
async fn a_relay_on_another_machine_requires_tls() {
    let (trusted, config) = certificate();
    for (security, tls_at_once) in
        [(ConnectionSecurity::StartTls, false), (ConnectionSecurity::Tls, true)]
    {
        let behaviour =
            Behaviour { tls: Some(Arc::clone(&config)), tls_at_once, ..Behaviour::default() };
        let mut relay = Relay::start(behaviour).await;
        let settings = settings(relay.port, security, Some(("shop", "s3cret")));
        let transport =
            SmtpTransport::with_tls(settings.clone(), Some(tls_trusting(trusted.clone())));
        assert_eq!(transport.deliver(&mail("luis@example.org")).await, Ok(()), "{security:?}");
        let lines = relay.received_lines();
        assert!(lines.iter().any(|line| line.starts_with("AUTH PLAIN ")), "{lines:#?}");
        // A certificate of an unknown authority.
        let stranger = SmtpTransport::new(settings).unwrap();
        let error = stranger.deliver(&mail("luis@example.org")).await.unwrap_err();
        assert!(
            matches!(error, SmtpError::Insecure | SmtpError::ConnectionLost(SmtpStage::Connect)),
            "{error:?}"
        );
        let lines = relay.received_lines();
        assert!(!lines.iter().any(|line| line.starts_with("AUTH") || line.starts_with("RCPT")));
    }
    // A relay, or an attacker in between, that offers no STARTTLS.
    let mut bare = Relay::start(Behaviour::default()).await;
    let settings = settings(bare.port, ConnectionSecurity::StartTls, Some(("shop", "s3cret")));
    let transport = SmtpTransport::with_tls(settings, Some(tls_trusting(trusted)));
    assert_eq!(transport.deliver(&mail("luis@example.org")).await, Err(SmtpError::Insecure));
    let lines = bare.received_lines();
    assert!(
        lines.iter().all(|line| ["<connected>", "EHLO shop.example", "QUIT"].contains(&&**line))
    );
}

#[tokio::test]
async fn a_refused_login_does_not_bounce_the_address() {
    let behaviour = Behaviour {
        special: Some(("AUTH", Answer::Reply("535 5.7.8 no"))),
        ..Behaviour::default()
    };
    let relay = Relay::start(behaviour).await;
    let settings = settings(relay.port, ConnectionSecurity::Loopback, Some(("shop", "s3cret")));
    assert!(!format!("{settings:?}").contains("s3cret"));
    let transport = SmtpTransport::new(settings).unwrap();
    let error = transport.deliver(&mail("luis@example.org")).await;
    let reply = Reply { code: 535, enhanced: Some((7, 8)) };
    assert_eq!(error, Err(SmtpError::Rejected(SmtpStage::Login, reply)));
}

#[tokio::test]
async fn an_unusable_address_is_not_sent_to_the_relay() {
    let mut relay = Relay::start(Behaviour::default()).await;
    let transport = relay.transport();
    for to in ["luis", "ñandú@example.org", "a@b@c"] {
        assert_eq!(transport.deliver(&mail(to)).await, Err(SmtpError::UnusableAddress), "{to}");
    }
    assert!(!relay.received_lines().iter().any(|line| line.starts_with("RCPT")));
}

#[test]
fn only_this_machine_is_loopback() {
    let table = [
        ("localhost", true),
        ("LOCALHOST", true),
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("[::1]", true),
        ("::1", true),
        ("10.0.0.1", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("0.0.0.0", false),
    ];
    for (host, is_ours) in table {
        assert_eq!(is_loopback(host), is_ours, "{host}");
    }
}

#[test]
fn each_smtp_error_has_its_outcome() {
    use MailOutcome::{Bounced, Failed, Refused};
    use SmtpStage::{Connect, Data, Login, Message, Recipient, Sender};
    let replied = |stage, code, text| {
        SmtpError::Rejected(stage, Reply { code, enhanced: parse_enhanced_code(text) })
    };
    let table = [
        (replied(Recipient, 550, "5.1.1 unknown"), Bounced, false),
        (replied(Recipient, 550, "no such user"), Bounced, false),
        (replied(Recipient, 551, ""), Bounced, false),
        (replied(Recipient, 553, "5.1.3 syntax"), Bounced, false),
        (replied(Recipient, 550, "5.2.1 disabled"), Bounced, false),
        // These are about the relay's policy, its storage or our sender, not about the address.
        (replied(Recipient, 550, "5.7.1 relaying denied"), Failed, false),
        (replied(Recipient, 552, "5.2.2 full"), Failed, false),
        (replied(Recipient, 554, "no"), Failed, false),
        (replied(Recipient, 550, "5.1.8 your domain"), Failed, false),
        (replied(Recipient, 450, "4.1.1 later"), Failed, false),
        (replied(Data, 554, ""), Refused, false),
        (replied(Message, 550, "5.7.1 spam"), Refused, false),
        (replied(Message, 451, ""), Failed, false),
        (replied(Connect, 554, ""), Failed, true),
        (replied(Login, 535, "5.7.8 no"), Failed, true),
        (replied(Sender, 550, "5.1.8 no"), Failed, true),
        (SmtpError::ConnectionLost(Connect), Failed, true),
        (SmtpError::ConnectionLost(Recipient), Failed, false),
        // The message may have arrived, and is sent again.
        (SmtpError::ConnectionLost(Message), Failed, false),
        (SmtpError::Insecure, Failed, true),
        (SmtpError::UnusableAddress, Refused, false),
    ];
    for (error, outcome, is_relay_unavailable) in table {
        assert_eq!(
            (error.outcome(), error.is_relay_unavailable()),
            (outcome, is_relay_unavailable),
            "{error}"
        );
    }
}

#[test]
fn an_enhanced_code_is_parsed_at_the_start_of_a_reply() {
    let table = [
        ("5.1.1 <luis@example.org>: unknown", Some((1, 1))),
        ("4.7.500", Some((7, 500))),
        ("2.0.0 fine", None),
        ("5.1", None),
        ("5.1.1.1 x", None),
        ("no such user 5.1.1", None),
        ("", None),
    ];
    for (text, expected) in table {
        assert_eq!(parse_enhanced_code(text), expected, "{text}");
    }
}
