//! The words of the commands around shipping: profiles, raw calls, labels in the terminal, webhooks,
//! checks, manuals.

use super::Text;

#[rustfmt::skip]
texts! {
    // Headings and labels.
    PROFILE = "Profile", "Perfil";
    IN_USE = "In use", "En uso";
    ADDRESS = "Address", "Dirección";
    API_KEY = "API key", "Clave de API";
    LANGUAGE = "Language", "Idioma";
    OUTPUT = "Output", "Salida";
    PASSED = "ok", "bien";
    FAILED = "failed", "falló";
    SKIPPED = "skipped", "omitido";
    AS_IS = "{value}", "{value}";
    MAN_NAME = "NAME", "NOMBRE";
    MAN_SYNOPSIS = "SYNOPSIS", "SINOPSIS";
    MAN_EXITS = "EXIT STATUS", "CÓDIGOS DE SALIDA";
    MAN_ENVIRONMENT = "ENVIRONMENT", "ENTORNO";
    MAN_VARIABLES = "PARCELO_API_KEY, PARCELO_BASE_URL, PARCELO_PROFILE, PARCELO_LANG, PARCELO_OUTPUT: as the options; an option is stronger, a profile weaker.\nPARCELO_WEBHOOK_SECRET: the secret of webhook listen; several with commas between them.\nNO_COLOR: no colours.\nLC_ALL, LC_MESSAGES, LANG: the language, when nothing else says it.", "PARCELO_API_KEY, PARCELO_BASE_URL, PARCELO_PROFILE, PARCELO_LANG, PARCELO_OUTPUT: como las opciones; una opción vale más, un perfil menos.\nPARCELO_WEBHOOK_SECRET: el secreto de webhook listen; varios, separados por comas.\nNO_COLOR: sin colores.\nLC_ALL, LC_MESSAGES, LANG: el idioma, si nada más lo indica.";
    MAN_FILES = "FILES", "ARCHIVOS";
    MAN_CONFIG = "$XDG_CONFIG_HOME/parcelo/config.toml (~/.config/parcelo/config.toml): the profiles, readable by their owner only; parcelo config path shows where it is.", "$XDG_CONFIG_HOME/parcelo/config.toml (~/.config/parcelo/config.toml): los perfiles, legibles solo por su dueño; parcelo config path muestra dónde está.";

    // Profiles.
    CONFIG_UNREADABLE = "{file} cannot be read: {what}.", "No se puede leer {file}: {what}.";
    CONFIG_BROKEN = "{file} is not TOML: line {what} cannot be understood.", "{file} no es TOML: no se entiende la línea {what}.";
    CONFIG_SETTING = "{file} has a setting that is none or has no possible value: {what}.", "{file} tiene un ajuste que no existe o sin un valor posible: {what}.";
    FIX_CONFIG = "Correct the file, or rename it and run parcelo config init. A profile has base_url, api_key, language (en, es) and output (table, json, ndjson, csv).", "Corrija el archivo, o cámbiele el nombre y ejecute parcelo config init. Un perfil tiene base_url, api_key, language (en, es) y output (table, json, ndjson, csv).";
    NO_PROFILE = "There is no profile {name}.", "No existe el perfil {name}.";
    SEE_PROFILES = "parcelo config list shows the profiles, parcelo config init makes one.", "parcelo config list muestra los perfiles y parcelo config init crea uno.";
    NO_PROFILES = "There are no profiles yet; parcelo config init makes one.", "Todavía no hay perfiles; parcelo config init crea uno.";
    PROFILE_EXISTS = "There is a profile {name} already.", "Ya existe el perfil {name}.";
    FORCE = "Give another name, or add --force to replace it.", "Indique otro nombre o añada --force para sustituirlo.";
    BAD_PROFILE_NAME = "{name} cannot be a profile's name: letters, digits, hyphens and underscores, at most 64.", "{name} no puede ser el nombre de un perfil: letras, dígitos, guiones y guiones bajos, como máximo 64.";
    PROFILE_MADE = "The profile {name} ({environment}) stands in {file}, which only you can read. parcelo doctor tries it out.", "El perfil {name} ({environment}) está en {file}, que solo usted puede leer. parcelo doctor lo prueba.";
    NO_HOME = "Nobody knows where your settings belong: there is no home directory.", "No se sabe dónde van sus ajustes: no hay directorio personal.";
    SET_HOME = "Set HOME or XDG_CONFIG_HOME to a directory that you may write to.", "Defina HOME o XDG_CONFIG_HOME con un directorio en el que pueda escribir.";
    ASK_ADDRESS = "The service's address, such as http://127.0.0.1:8081:", "La dirección del servicio, por ejemplo http://127.0.0.1:8081:";
    ASK_KEY = "The API key (it is not shown):", "La clave de API (no se muestra):";
    NO_ONE_TO_ASK = "There is nobody to ask for the API key.", "No hay a quién pedir la clave de API.";
    KEY_TO_INIT = "Give the key on standard input: parcelo config init --api-key-stdin --base-url URL < FILE", "Pase la clave por la entrada estándar: parcelo config init --api-key-stdin --base-url URL < ARCHIVO";
    EXPOSED = "Others can read {file}, and the API keys in it. Run: chmod 600 {file}", "Otros pueden leer {file} y las claves de API que contiene. Ejecute: chmod 600 {file}";
    SEE_VARIABLES = "Correct the variable, or unset it.", "Corrija la variable o elimínela.";

    // Raw calls, and requests that are not sent.
    NOT_TEXT = "The answer is not text, and not for a terminal.", "La respuesta no es texto y no es para una terminal.";
    REDIRECT_ONLY = "Send the output into a file or a pipe.", "Envíe la salida a un archivo o una tubería.";
    RESUME_REQUEST = "Nobody knows yet whether it was executed. With an idempotencyKey in the request, run the same command again: it is never done twice (for 24 hours). Without one, look first.", "Aún no se sabe si se ejecutó. Si la solicitud tiene idempotencyKey, ejecute otra vez el mismo comando: nunca se hace dos veces (durante 24 horas). Si no la tiene, compruébelo antes.";
    NO_DRY_RUN = "This command sends nothing to the service that could be shown instead.", "Este comando no envía al servicio nada que se pueda mostrar en su lugar.";

    // Orders by their fields.
    FIELD_FORM = "Give a field as faults spell it and its value, such as --set receiver.address.city=Quito or --set products[0].quantity=2.", "Indique un campo tal como lo nombran los errores y su valor, por ejemplo --set receiver.address.city=Quito o --set products[0].quantity=2.";

    // Labels.
    LABEL_IS_VOID = "The label is void, so its text and its file are no longer available.", "La etiqueta está anulada, por lo que su texto y su archivo ya no están disponibles.";
    OPENED = "Opened {file}", "Se abrió {file}";
    NOT_ATTENDED = "--open needs a terminal, and cannot be used in CI.", "--open necesita una terminal y no se puede usar en CI.";
    NO_OPENER = "The label cannot be opened: {opener} is not installed.", "No se puede abrir la etiqueta: {opener} no está instalado.";
    NOT_OPENED = "The label could not be opened: {opener} failed.", "No se pudo abrir la etiqueta: {opener} falló.";
    SAVE_LABEL = "Save the label with parcelo label get, and open the file.", "Guarde la etiqueta con parcelo label get y abra el archivo.";

    // Webhooks.
    LISTENING = "Listening on {address} – Ctrl-C ends it.", "Escuchando en {address} – Ctrl-C para terminar.";
    NO_SECRET = "There is no webhook secret.", "Falta el secreto del webhook.";
    BAD_SECRET = "This is not a webhook secret: it is whsec_ and 24-64 bytes in base64.", "Esto no es el secreto de un webhook: es whsec_ y 24-64 bytes en base64.";
    GIVE_SECRET = "Set PARCELO_WEBHOOK_SECRET, or give --secret - and the secret on standard input.", "Defina PARCELO_WEBHOOK_SECRET, o indique --secret - y pase el secreto por la entrada estándar.";
    PORT_BUSY = "Nothing can listen on port {port}: {why}.", "No se puede escuchar en el puerto {port}: {why}.";
    OTHER_PORT = "Give another one with --port; 0 takes any that is free.", "Indique otro con --port; 0 toma cualquiera libre.";
    REJECTED = "refused: {why}", "rechazado: {why}";
    HEADER_MISSING = "the header {name} is missing; it was not sent by Parcelo, or a proxy dropped it", "falta el encabezado {name}; no lo envió Parcelo o un proxy lo quitó";
    HEADER_REPEATED = "the header {name} is there more than once", "el encabezado {name} está más de una vez";
    HEADER_MALFORMED = "the header {name} is malformed", "el encabezado {name} está mal formado";
    TOO_OLD = "it was sent {seconds} s ago; check this machine's clock", "se envió hace {seconds} s; revise el reloj de esta máquina";
    TOO_NEW = "it was sent {seconds} s in the future; check this machine's clock", "se envió {seconds} s en el futuro; revise el reloj de esta máquina";
    COPY = "it is a copy of one that was accepted before", "es copia de uno ya aceptado";
    NO_EVENT = "the body is not the JSON of an event", "el cuerpo no es el JSON de un evento";
    BAD_SIGNATURE = "no signature fits; check the secret", "ninguna firma corresponde; revise el secreto";
    NOT_FORWARDED = "The event could not be passed on to {address}; it will be sent again.", "No se pudo reenviar el evento a {address}; se volverá a enviar.";
    GIVE_TARGET = "Give your program's address, such as --forward-to http://127.0.0.1:3000/hooks.", "Indique la dirección de su programa, por ejemplo --forward-to http://127.0.0.1:3000/hooks.";
    CHECK_RECEIVER = "Start your program, or check --forward-to.", "Inicie su programa o revise --forward-to.";

    // Checks.
    CHECK_ADDRESS_OF = "Address", "Dirección";
    CHECK_API_KEY = "API key", "Clave de API";
    CHECK_DNS = "DNS", "DNS";
    CHECK_SERVICE = "Service", "Servicio";
    CHECK_CLOCK = "Clock", "Reloj";
    CHECK_LIMITS = "Limits", "Límites";
    PROFILE_OF = "{name}, from {file}", "{name}, de {file}";
    NO_CONFIG = "none; flags and variables only", "ninguno; solo opciones y variables";
    CHMOD = "Others can read the file and the keys in it: chmod 600 it, and think of new keys.", "Otros pueden leer el archivo y sus claves: póngale chmod 600 y piense en claves nuevas.";
    NOT_REACHED = "because of the above", "por lo anterior";
    NO_SUCH_HOST = "{host} has no address: {why}.", "{host} no tiene dirección: {why}.";
    ANSWERED = "knows the key {key} ({environment})", "conoce la clave {key} ({environment})";
    ANSWERED_TLS = "TLS is fine; it knows the key {key} ({environment})", "TLS correcto; conoce la clave {key} ({environment})";
    NO_DATE = "the service does not tell the time", "el servicio no indica la hora";
    CLOCK_FINE = "as the service's", "como el del servicio";
    CLOCK_FAST = "{seconds} s fast", "adelantado {seconds} s";
    CLOCK_SLOW = "{seconds} s slow", "atrasado {seconds} s";
    SET_CLOCK = "Set this machine's clock: webhooks are refused when it is off by more than 300 s.", "Ajuste el reloj de esta máquina: los webhooks se rechazan si difiere más de 300 s.";
    LIMITS_SEEN = "{limit} requests a second, {remaining} left in this one", "{limit} solicitudes por segundo, quedan {remaining} en este";
    NO_LIMITS = "the service does not tell them", "el servicio no los indica";
    NOT_HEALTHY = "{n} check(s) failed.", "{n} comprobación(es) fallaron.";
    PAGES_OR_PAGE = "--dir writes all pages; a command names one.", "--dir escribe todas las páginas; un comando nombra una.";
}

/// What each of these commands does, by its path.
#[rustfmt::skip]
pub(crate) const COMMAND_HELP: &[(&str, Text)] = &[
    ("parcelo webhook", Text { en: "Receive webhooks", es: "Recibir webhooks" }),
    ("parcelo webhook listen", Text { en: "Receive webhooks on this machine: verify, show, pass on", es: "Recibir webhooks en esta máquina: verificar, mostrar, reenviar" }),
    ("parcelo api", Text { en: "Call any path of the API with the key, safely retried", es: "Llamar a cualquier ruta de la API con la clave, con reintentos seguros" }),
    ("parcelo config", Text { en: "Make, list and choose profiles: address, key, language, output", es: "Crear, listar y elegir perfiles: dirección, clave, idioma, salida" }),
    ("parcelo config init", Text { en: "Make a profile; the API key is asked for, or read with --api-key-stdin", es: "Crear un perfil; la clave de API se pide o se lee con --api-key-stdin" }),
    ("parcelo config list", Text { en: "List the profiles, without their keys", es: "Listar los perfiles, sin sus claves" }),
    ("parcelo config use", Text { en: "Choose the profile that counts from now on", es: "Elegir el perfil que vale desde ahora" }),
    ("parcelo config path", Text { en: "Show where the profiles are kept", es: "Mostrar dónde se guardan los perfiles" }),
    ("parcelo doctor", Text { en: "Check profile, address, DNS, TLS, clock, key and limits", es: "Comprobar perfil, dirección, DNS, TLS, reloj, clave y límites" }),
    ("parcelo completions", Text { en: "Write completions for a shell", es: "Escribir el autocompletado de un intérprete de comandos" }),
    ("parcelo man", Text { en: "Write manual pages", es: "Escribir páginas de manual" }),
];

/// What each of their arguments means, by its id.
#[rustfmt::skip]
pub(crate) const ARGUMENT_HELP: &[(&str, Text)] = &[
    ("watch", Text { en: "Go on until every parcel is delivered, sent back or void: drawn anew on a terminal, a line for each change elsewhere", es: "Seguir hasta que todos los paquetes se entreguen, se devuelvan o se anulen: se redibuja en una terminal; si no, una línea por cambio" }),
    ("every", Text { en: "Seconds between two looks, 1-3600 [default: 15]", es: "Segundos entre consultas, 1-3600 [por defecto: 15]" }),
    ("set", Text { en: "Set a field of the order, such as receiver.address.city=Quito; a file is then not needed", es: "Dar un valor a un campo del pedido, por ejemplo receiver.address.city=Quito; entonces no hace falta un archivo" }),
    ("open", Text { en: "Open the label in the program that this system uses for PDF files", es: "Abrir la etiqueta en el programa que este sistema usa para archivos PDF" }),
    ("profile", Text { en: "The profile that counts [environment: PARCELO_PROFILE; default: the one that config use chose]", es: "El perfil que vale [entorno: PARCELO_PROFILE; por defecto: el elegido con config use]" }),
    ("dry_run", Text { en: "Show requests as curl, the key masked, instead of sending them; those that depend on an answer are left out", es: "Mostrar las solicitudes como curl, con la clave oculta, en vez de enviarlas; se omiten las que dependen de una respuesta" }),
    ("method", Text { en: "The HTTP method, such as GET", es: "El método HTTP, por ejemplo GET" }),
    ("path", Text { en: "The path with its query, such as /api/v1/parcels?limit=1", es: "La ruta con sus parámetros, por ejemplo /api/v1/parcels?limit=1" }),
    ("data", Text { en: "The JSON to send; - reads standard input", es: "El JSON que se envía; - lee la entrada estándar" }),
    ("port", Text { en: "The port to listen on, on this machine only [default: 4242]", es: "El puerto en el que escuchar, solo en esta máquina [por defecto: 4242]" }),
    ("secret", Text { en: "The webhook's secret, or - for standard input; better: PARCELO_WEBHOOK_SECRET, which other users cannot see", es: "El secreto del webhook, o - para la entrada estándar; mejor: PARCELO_WEBHOOK_SECRET, que otros usuarios no pueden ver" }),
    ("forward_to", Text { en: "Pass each event on to this address, as it came; its answer is what the service gets", es: "Reenviar cada evento a esta dirección, tal como llegó; su respuesta es la que recibe el servicio" }),
    ("new_profile", Text { en: "The profile's name [default: default]", es: "El nombre del perfil [por defecto: default]" }),
    ("other_profile", Text { en: "The profile's name", es: "El nombre del perfil" }),
    ("force", Text { en: "Replace a profile that is there", es: "Sustituir un perfil que ya existe" }),
    ("shell", Text { en: "bash, zsh, fish, elvish or powershell", es: "bash, zsh, fish, elvish o powershell" }),
    ("man_dir", Text { en: "Write every page as a file into this directory", es: "Escribir todas las páginas como archivos en este directorio" }),
    ("command", Text { en: "The command whose page is written, such as order create", es: "El comando cuya página se escribe, por ejemplo order create" }),
];

/// The names of their values.
#[rustfmt::skip]
pub(crate) const VALUE_NAMES: &[(&str, Text)] = &[
    ("FIELD=VALUE", Text { en: "FIELD=VALUE", es: "CAMPO=VALOR" }),
    ("METHOD", Text { en: "METHOD", es: "MÉTODO" }),
    ("PATH", Text { en: "PATH", es: "RUTA" }),
    ("PORT", Text { en: "PORT", es: "PUERTO" }),
    ("SECRET|-", Text { en: "SECRET|-", es: "SECRETO|-" }),
    ("NAME", Text { en: "NAME", es: "NOMBRE" }),
    ("SHELL", Text { en: "SHELL", es: "INTÉRPRETE" }),
    ("DIR", Text { en: "DIR", es: "DIRECTORIO" }),
    ("COMMAND", Text { en: "COMMAND", es: "COMANDO" }),
    ("SECONDS", Text { en: "SECONDS", es: "SEGUNDOS" }),
];
