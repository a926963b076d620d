//! Texts of the commands that do not handle parcels: profiles, raw calls, webhooks, checks and manual pages; also of
//! labels shown on screen.

use super::Text;

#[rustfmt::skip]
texts! {
    // Headings and labels.
    PROFILE = "Profile", "Perfil";
    CURRENT = "Current", "Actual";
    ADDRESS = "Address", "Dirección";
    API_KEY = "API key", "Clave de API";
    LANGUAGE = "Language", "Idioma";
    OUTPUT = "Output", "Salida";
    PASSED = "ok", "correcto";
    FAILED = "failed", "falló";
    SKIPPED = "skipped", "omitido";
    AS_IS = "{value}", "{value}";
    MAN_NAME = "NAME", "NOMBRE";
    MAN_SYNOPSIS = "SYNOPSIS", "SINOPSIS";
    MAN_EXITS = "EXIT STATUS", "CÓDIGOS DE SALIDA";
    MAN_ENVIRONMENT = "ENVIRONMENT", "ENTORNO";
    MAN_VARIABLES = "PARCELO_API_KEY, PARCELO_BASE_URL, PARCELO_PROFILE, PARCELO_LANG, PARCELO_OUTPUT: defaults of the options, which override them; they override the profile.\nPARCELO_WEBHOOK_SECRET: the secret of webhook listen; several, separated by commas.\nNO_COLOR: disables colours.\nLC_ALL, LC_MESSAGES, LANG: the language, unless it is set otherwise.", "PARCELO_API_KEY, PARCELO_BASE_URL, PARCELO_PROFILE, PARCELO_LANG, PARCELO_OUTPUT: valores por defecto de las opciones; una opción tiene prioridad sobre su variable, y una variable sobre el perfil.\nPARCELO_WEBHOOK_SECRET: el secreto de webhook listen; varios, separados por comas.\nNO_COLOR: desactiva los colores.\nLC_ALL, LC_MESSAGES, LANG: el idioma, si no se indica de otra forma.";
    MAN_FILES = "FILES", "ARCHIVOS";
    MAN_CONFIG = "$XDG_CONFIG_HOME/parcelo/config.toml (~/.config/parcelo/config.toml): the profiles, readable by their owner only; parcelo config path prints the path.", "$XDG_CONFIG_HOME/parcelo/config.toml (~/.config/parcelo/config.toml): los perfiles, que solo su dueño puede leer; parcelo config path muestra la ruta.";

    // Profiles.
    INVALID_TOML = "{file} is not valid TOML: error on line {what}.", "{file} no es TOML válido: error en la línea {what}.";
    INVALID_SETTING = "{file}: unknown setting or invalid value: {what}.", "{file}: ajuste desconocido o valor no válido: {what}.";
    FIX_CONFIG = "Correct the file, or rename it and run parcelo config init. A profile has base_url, api_key, language (en, es), output (table, json, ndjson, csv, numbers) and sender.", "Corrija el archivo, o cámbiele el nombre y ejecute parcelo config init. Un perfil tiene base_url, api_key, language (en, es), output (table, json, ndjson, csv, numbers) y sender.";
    NO_PROFILE = "Profile {name} does not exist.", "El perfil {name} no existe.";
    SEE_PROFILES = "parcelo config list lists the profiles, parcelo config init creates one.", "parcelo config list muestra los perfiles y parcelo config init crea uno.";
    NO_PROFILES = "There are no profiles yet; parcelo config init creates one.", "Todavía no hay perfiles; parcelo config init crea uno.";
    PROFILE_EXISTS = "Profile {name} already exists.", "El perfil {name} ya existe.";
    ADD_FORCE = "Use another name, or add --force to replace it.", "Use otro nombre o agregue --force para reemplazarlo.";
    INVALID_PROFILE_NAME = "invalid profile name '{name}': expected at most 64 letters, digits, hyphens and underscores", "nombre de perfil no válido '{name}': se esperan como máximo 64 letras, dígitos, guiones y guiones bajos";
    PROFILE_SAVED = "Saved profile {name} ({environment}) in {file}, which only you can read. Test it with parcelo doctor.", "Se guardó el perfil {name} ({environment}) en {file}, que solo usted puede leer. Pruébelo con parcelo doctor.";
    NO_HOME = "No home directory found for the configuration file.", "No se encontró un directorio personal para el archivo de configuración.";
    SET_HOME = "Set HOME or XDG_CONFIG_HOME to a directory that you can write to.", "Defina HOME o XDG_CONFIG_HOME con un directorio en el que pueda escribir.";
    ASK_ADDRESS = "Service address, for example http://127.0.0.1:8081:", "Dirección del servicio, por ejemplo http://127.0.0.1:8081:";
    ASK_KEY = "API key (hidden):", "Clave de API (oculta):";
    NO_TERMINAL_FOR_KEY = "No terminal available to prompt for the API key.", "No hay terminal para pedir la clave de API.";
    KEY_ON_STDIN = "Pass the key on standard input: parcelo config init --api-key-stdin --base-url URL < FILE", "Pase la clave por la entrada estándar: parcelo config init --api-key-stdin --base-url URL < ARCHIVO";
    EXPOSED = "Other users can read {file} and the API keys in it. Run: chmod 600 {file}", "Otros usuarios pueden leer {file} y las claves de API que contiene. Ejecute: chmod 600 {file}";
    SEE_VARIABLES = "Correct the variable, or unset it.", "Corrija la variable o elimínela.";

    // Raw calls, and requests that are not sent.
    BINARY_RESPONSE = "The response is not text and cannot be written to a terminal.", "La respuesta no es texto y no se puede escribir en una terminal.";
    REDIRECT_OUTPUT = "Redirect standard output to a file or a pipe.", "Redirija la salida estándar a un archivo o una tubería.";
    RESUME_REQUEST = "The outcome is unknown: the request may have been executed. If it has an idempotencyKey, run the same command again: it is not executed twice (for 24 hours). If not, check first.", "El resultado es desconocido: puede que la solicitud se haya ejecutado. Si tiene idempotencyKey, ejecute otra vez el mismo comando: no se ejecuta dos veces (durante 24 horas). Si no la tiene, verifique primero si se ejecutó.";
    NO_DRY_RUN = "--dry-run cannot be used with this command, which sends no request that it could show.", "--dry-run no se puede usar con este comando, que no envía ninguna solicitud que se pueda mostrar.";

    // Orders by their fields.
    FIELD_FORM = "Specify a field and its value, for example --set receiver.address.city=Quito or --set products[0].quantity=2.", "Indique un campo y su valor, por ejemplo --set receiver.address.city=Quito o --set products[0].quantity=2.";

    // Labels.
    LABEL_IS_VOID = "The label is void, so its text and its file are no longer available.", "La etiqueta está anulada, por lo que su texto y su archivo ya no están disponibles.";
    OPENED = "Opened {file}", "Se abrió {file}";
    NOT_ATTENDED = "--open needs a terminal, and cannot be used in CI.", "--open necesita una terminal y no se puede usar en CI.";
    NO_OPENER = "The label cannot be opened: {opener} is not installed.", "No se puede abrir la etiqueta: {opener} no está instalado.";
    NOT_OPENED = "The label could not be opened: {opener} failed.", "No se pudo abrir la etiqueta: {opener} falló.";
    SAVE_LABEL = "Save the label with parcelo label get, and open the file.", "Guarde la etiqueta con parcelo label get y abra el archivo.";

    // Webhooks.
    LISTENING = "Listening on {address} (Ctrl-C to stop)", "Escuchando en {address} (Ctrl-C para terminar)";
    NO_LONGER_LISTENING = "No longer listening. In the sandbox, an event that is not accepted within about a minute turns the webhook off; its page on the dashboard turns it on and sends what was missed.", "Ya no se reciben eventos. En el entorno de pruebas, un evento que no se acepta en alrededor de un minuto desactiva el webhook; desde su página en el panel se activa y se envía lo que faltó.";
    NO_SECRET = "No webhook secret provided.", "Falta el secreto del webhook.";
    MALFORMED_SECRET = "Malformed webhook secret: expected whsec_ followed by 24-64 bytes in base64.", "Secreto de webhook mal formado: se espera whsec_ seguido de 24-64 bytes en base64.";
    GIVE_SECRET = "Set PARCELO_WEBHOOK_SECRET, or pass the secret on standard input with --secret -.", "Defina PARCELO_WEBHOOK_SECRET o pase el secreto por la entrada estándar con --secret -.";
    CANNOT_LISTEN = "Cannot listen on port {port}: {reason}.", "No se puede escuchar en el puerto {port}: {reason}.";
    OTHER_PORT = "Use another port with --port; 0 picks a free one.", "Use otro puerto con --port; 0 elige uno libre.";
    REJECTED = "rejected: {reason}", "rechazado: {reason}";
    HEADER_MISSING = "missing header {name}: not sent by Parcelo, or removed by a proxy", "falta el encabezado {name}: no lo envió Parcelo o un proxy lo quitó";
    HEADER_REPEATED = "repeated header {name}", "encabezado {name} repetido";
    HEADER_MALFORMED = "malformed header {name}", "encabezado {name} mal formado";
    TOO_OLD = "sent {seconds} s ago; check this machine's clock", "enviado hace {seconds} s; revise el reloj de esta máquina";
    TOO_NEW = "sent {seconds} s in the future; check this machine's clock", "enviado {seconds} s en el futuro; revise el reloj de esta máquina";
    DUPLICATE_EVENT = "duplicate of an event that was accepted before", "duplicado de un evento ya aceptado";
    INVALID_EVENT = "the body is not a valid event", "el cuerpo no es un evento válido";
    SIGNATURE_MISMATCH = "signature mismatch; check the secret", "la firma no coincide; revise el secreto";
    NOT_FORWARDED = "Cannot forward the event to {address}; the service will send it again.", "No se puede reenviar el evento a {address}; el servicio lo enviará de nuevo.";
    GIVE_TARGET = "Specify your program's address, for example --forward-to http://127.0.0.1:3000/hooks.", "Indique la dirección de su programa, por ejemplo --forward-to http://127.0.0.1:3000/hooks.";
    CHECK_RECEIVER = "Start your program, or check --forward-to.", "Inicie su programa o revise --forward-to.";

    // Checks.
    CHECK_ADDRESS_OF = "Address", "Dirección";
    CHECK_API_KEY = "API key", "Clave de API";
    CHECK_DNS = "DNS", "DNS";
    CHECK_SERVICE = "Service", "Servicio";
    CHECK_CLOCK = "Clock", "Reloj";
    CHECK_LIMITS = "Limits", "Límites";
    KEY_PLACE = "It comes from {place}.", "Viene de {place}.";
    FROM_VARIABLE = "the variable PARCELO_API_KEY", "la variable PARCELO_API_KEY";
    FROM_STDIN = "standard input", "la entrada estándar";
    FROM_PROFILE = "the profile {name}", "el perfil {name}";
    PROFILE_OF = "{name}, from {file}", "{name}, de {file}";
    NO_CONFIG = "none; options and variables only", "ninguno; solo opciones y variables";
    EXPOSED_HINT = "Other users can read the file and its keys. Run chmod 600 on it, and consider replacing the keys.", "Otros usuarios pueden leer el archivo y sus claves. Ejecute chmod 600 sobre él y considere reemplazar las claves.";
    DEPENDS_ON_FAILED = "depends on a failed check", "depende de una verificación fallida";
    NO_SUCH_HOST = "Cannot resolve {host}: {reason}.", "No se puede resolver {host}: {reason}.";
    KEY_ACCEPTED = "accepts the key {key} ({environment})", "acepta la clave {key} ({environment})";
    KEY_ACCEPTED_TLS = "TLS works; accepts the key {key} ({environment})", "TLS funciona; acepta la clave {key} ({environment})";
    NO_DATE = "the service sent no date", "el servicio no envió la fecha";
    CLOCK_IN_SYNC = "in sync with the service", "sincronizado con el servicio";
    IN_DAYS = "{n} days", "{n} días";
    IN_HOURS = "{n} hours", "{n} horas";
    IN_MINUTES = "{n} minutes", "{n} minutos";
    IN_SECONDS = "{n} s", "{n} s";
    CLOCK_FAST = "{time} fast", "adelantado {time}";
    CLOCK_SLOW = "{time} slow", "atrasado {time}";
    SET_CLOCK = "Set this machine's clock: webhooks are rejected if it is off by more than 300 s.", "Ajuste el reloj de esta máquina: los webhooks se rechazan si difiere en más de 300 s.";
    LIMITS_SEEN = "{limit} requests per second, {remaining} left in the current second", "{limit} solicitudes por segundo, quedan {remaining} en el segundo actual";
    NO_LIMITS = "the service sent no rate limit", "el servicio no envió el límite de solicitudes";
    CHECKS_FAILED = "Failed checks: {n}.", "Verificaciones fallidas: {n}.";
    DIR_OR_COMMAND = "--dir writes all pages and cannot be used with a command", "--dir escribe todas las páginas y no se puede usar con un comando";
}
