//! TLS and passwords with a server that demands them: the certificates that each `sslmode` accepts, and errors that
//! say what to do.

use std::{
    fs::Permissions,
    io::Write as _,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU16, Ordering},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::task::LocalSet;

use crate::postgres::test_util::cluster::{Cluster, as_owner};
use crate::postgres::{Address, connection::Connector, error::DbResult};

/// Access rules: `parcelo` in any way, `secure` with TLS only, `shop` with a password; there is no role `ghost`.
const ACCESS: &str = "\
local all all trust
host all parcelo 127.0.0.1/32 trust
hostssl all secure 127.0.0.1/32 trust
host all shop 127.0.0.1/32 scram-sha-256
host all ghost 127.0.0.1/32 trust
";
const PASSWORD: &str = "correct horse";

/// A PostgreSQL cluster with a certificate for `localhost`, and the files of its clients.
struct TlsServer {
    cluster: Cluster,
    port: u16,
    /// The certificates of authorities: the server's and an unrelated one's.
    files: TempDir,
}

/// Creates a certificate authority, writes its certificate to a file for clients, and returns its signer.
fn create_authority(file: &Path) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, file.file_stem().unwrap().to_str().unwrap());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(file, params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

/// Writes a file that the cluster's user owns and no one else can read, because PostgreSQL refuses any other key file.
fn write_as_owner(file: &Path, text: &str) {
    let mut command = as_owner("sh");
    command.args(["-c", "umask 077; cat >\"$1\"", "sh"]).arg(file);
    let mut writing = command.stdin(Stdio::piped()).spawn().unwrap();
    writing.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writing.wait().unwrap().success());
}

/// Returns a free port below the ephemeral range (from 32768), so that no program that asks for any port gets it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 10_000).unwrap();
    let ports = std::iter::repeat_with(|| 20_000 + first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.take(2_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

impl TlsServer {
    /// Starts the server, or `None` if PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let files = TempDir::new().unwrap();
        let issuer = create_authority(&files.path().join("ca.pem"));
        create_authority(&files.path().join("stranger.pem"));
        // Another authority with the same name as the right one.
        std::fs::create_dir(files.path().join("false")).unwrap();
        create_authority(&files.path().join("false/ca.pem"));
        std::fs::write(files.path().join("empty.pem"), "").unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &issuer).unwrap();
        let output = as_owner("mktemp").arg("-d").output().unwrap().stdout;
        let folder = PathBuf::from(String::from_utf8(output).unwrap().trim());
        write_as_owner(&folder.join("key.pem"), &key.serialize_pem());
        write_as_owner(&folder.join("certificate.pem"), &certificate.pem());
        write_as_owner(&folder.join("access"), ACCESS);
        let port = free_port();
        let setting =
            |name: &str, file: &str| format!("{name} = '{}'", folder.join(file).display());
        let cluster = Cluster::start(&[
            "listen_addresses = '127.0.0.1'",
            &format!("port = {port}"),
            "ssl = on",
            &setting("ssl_key_file", "key.pem"),
            &setting("ssl_cert_file", "certificate.pem"),
            &setting("hba_file", "access"),
        ])?;
        let server = Self { cluster, port, files };
        server.run_sql("CREATE ROLE secure LOGIN");
        server.run_sql(&format!("CREATE ROLE shop LOGIN PASSWORD '{PASSWORD}'"));
        Some(server)
    }

    fn run_sql(&self, sql: &str) -> String {
        self.cluster.query(&format!("port={} dbname=postgres", self.port), sql)
    }

    /// Returns an address of the server. In the query, `{files}` is the folder's path, and `{root}` names a
    /// certificate in it.
    fn address(&self, user_at_host: &str, query: &str) -> Address {
        let folder = self.files.path().display();
        let query = query.replace("{root}", "sslrootcert={files}");
        let query = query.replace("{files}", &folder.to_string());
        let url = format!("postgres://{user_at_host}:{}/postgres?{query}", self.port);
        Address::parse(&url).unwrap()
    }

    /// Returns true if a connection is encrypted, or the reason why it was refused.
    async fn connect(&self, user_at_host: &str, query: &str) -> Result<bool, String> {
        let address = self.address(user_at_host, query);
        let connector = Connector::for_writer(&address).map_err(|failure| failure.to_string())?;
        connect(&connector).await
    }
}

/// Returns true if a connection is encrypted, or the reason why it was refused.
async fn connect(connector: &Connector) -> Result<bool, String> {
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let connect = async { connector.connect().await?.value(sql, &[]).await };
    let connected: DbResult<bool> = LocalSet::new().run_until(connect).await;
    connected.map_err(|failure| failure.to_string())
}

#[tokio::test]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn each_sslmode_checks_certificates_like_libpq() {
    let Some(server) = TlsServer::start() else { return };
    let table = [
        ("parcelo@localhost", "sslmode=disable", Ok(false)),
        ("parcelo@localhost", "sslmode=allow", Ok(true)),
        ("parcelo@localhost", "", Ok(true)),
        ("parcelo@localhost", "sslmode=require", Ok(true)),
        ("parcelo@localhost", "sslmode=require&{root}/ca.pem", Ok(true)),
        ("parcelo@localhost", "sslmode=require&{root}/stranger.pem", Err("sslrootcert=FILE")),
        ("parcelo@localhost", "sslmode=verify-ca&{root}/ca.pem", Ok(true)),
        ("parcelo@127.0.0.1", "sslmode=verify-ca&{root}/ca.pem", Ok(true)),
        ("parcelo@localhost", "sslmode=verify-ca&{root}/stranger.pem", Err("sslrootcert=FILE")),
        ("parcelo@localhost", "sslmode=verify-full&{root}/ca.pem", Ok(true)),
        ("parcelo@127.0.0.1", "sslmode=verify-full&{root}/ca.pem", Err("host name")),
        ("parcelo@localhost", "sslmode=verify-full&{root}/stranger.pem", Err("sslrootcert=FILE")),
        ("parcelo@localhost", "sslmode=verify-full", Err("sslrootcert=FILE")),
        ("parcelo@localhost", "sslmode=verify-full&{root}/false/ca.pem", Err("sslrootcert=FILE")),
        ("parcelo@localhost", "sslmode=verify-full&{root}/none.pem", Err("cannot be read")),
        ("parcelo@localhost", "sslmode=verify-full&{root}/empty.pem", Err("there are none in it")),
        ("secure@localhost", "sslmode=require", Ok(true)),
        ("secure@localhost", "sslmode=disable", Err("pg_hba.conf")),
    ];
    for (user_at_host, query, expected) in table {
        let result = server.connect(user_at_host, query).await;
        match (&result, expected) {
            (Ok(is_encrypted), Ok(expected)) => {
                assert_eq!(*is_encrypted, expected, "{user_at_host} {query}");
            }
            (Err(refused), Err(advice)) => assert!(refused.contains(advice), "{query}: {refused}"),
            _ => panic!("{user_at_host} {query}: {result:?}"),
        }
    }
    server.run_sql("ALTER SYSTEM SET ssl = off");
    server.run_sql("SELECT pg_reload_conf()");
    while server.run_sql("SHOW ssl") == "on" {}
    assert_eq!(server.connect("parcelo@localhost", "").await, Ok(false));
    let refused = server.connect("parcelo@localhost", "sslmode=require").await.unwrap_err();
    assert!(refused.contains("ssl = on"), "{refused}");
}

#[tokio::test]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn errors_ask_for_a_password_and_never_show_it() {
    let Some(server) = TlsServer::start() else { return };
    let right = format!("shop:{}@localhost", PASSWORD.replace(' ', "%20"));
    assert_eq!(server.connect(&right, "sslmode=require").await, Ok(true));
    let file = server.files.path().join("passwords");
    std::fs::write(&file, "*:*:*:*:battery staple").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    for (user_at_host, query, advice) in [
        ("shop:battery%20staple@localhost", "passfile=/none", "the password in the address"),
        ("shop@localhost", "passfile={files}/passwords", "right password into the password file"),
        ("shop@localhost", "passfile=/none", "set PGPASSWORD"),
    ] {
        let refused = server.connect(user_at_host, query).await.unwrap_err();
        assert!(refused.contains(advice), "{user_at_host}: {refused}");
        assert!(!refused.contains("battery"), "{refused}");
    }
    // A running server keeps its connector.
    let kept = server.address("shop@localhost", "passfile={files}/passwords");
    let kept = Connector::for_writer(&kept).unwrap();
    connect(&kept).await.unwrap_err();
    std::fs::write(&file, format!("*:*:*:*:{PASSWORD}")).unwrap();
    assert_eq!(connect(&kept).await, Ok(true), "with the password that is now in the file");
    let stranger = server.connect("ghost@localhost", "").await.unwrap_err();
    assert!(stranger.contains("create the role"), "{stranger}");
    let missing = server.connect("parcelo@localhost", "dbname=none").await.unwrap_err();
    assert!(missing.contains("create the database"), "{missing}");
}
