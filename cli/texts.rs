//! The texts of the command, in English and Spanish side by side. Those of the service and of the rules come from the
//! SDK.

/// Texts by name, and all of them for the tests.
macro_rules! texts {
    ($($name:ident = $en:literal, $es:literal;)+) => {
        $(pub(crate) const $name: Text = Text { en: $en, es: $es };)+
        #[cfg(test)]
        pub(in crate::texts) const ALL: &[(&str, Text)] = &[$((stringify!($name), $name)),+];
    };
}

pub(crate) mod examples;
pub(crate) mod help;
pub(crate) mod import;
pub(crate) mod tools;

use parcelo::Language;

pub(crate) use tools::*;

/// A text in both languages, with `{placeholders}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    en: &'static str,
    es: &'static str,
}

/// A text in both languages, with its placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) en: String,
    pub(crate) es: String,
}

impl Text {
    /// Returns the text in a language, with its placeholders.
    pub(crate) fn pick(self, language: Language) -> &'static str {
        language.pick(self.en, self.es)
    }

    /// Returns the text with its placeholders filled in.
    pub(crate) fn with(self, values: &[(&str, &str)]) -> Message {
        let filled = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
        };
        Message { en: filled(self.en), es: filled(self.es) }
    }

    /// Returns the text with its placeholders replaced by messages, each in its own language.
    pub(crate) fn with_messages(self, values: &[(&str, &Message)]) -> Message {
        let filled = |language| {
            let values: Vec<_> =
                values.iter().map(|(name, message)| (*name, message.pick(language))).collect();
            self.with(&values)
        };
        Message { en: filled(Language::En).en, es: filled(Language::Es).es }
    }

    /// Returns the text with a placeholder replaced by a message.
    pub(crate) fn with_message(self, name: &str, message: &Message) -> Message {
        self.with_messages(&[(name, message)])
    }
}

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        text.with(&[])
    }
}

impl Message {
    /// Creates a message from its text in each language.
    pub(crate) fn in_both(text: impl Fn(Language) -> String) -> Self {
        Self { en: text(Language::En), es: text(Language::Es) }
    }

    /// Returns this text followed by another.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self { en: format!("{} {}", self.en, other.en), es: format!("{} {}", self.es, other.es) }
    }

    /// Returns the text in a language.
    pub(crate) fn pick(&self, language: Language) -> &str {
        language.pick(&self.en, &self.es)
    }
}

#[rustfmt::skip]
texts! {
    // Headings and labels.
    EXAMPLES = "Examples:", "Ejemplos:";
    ARGUMENTS = "Arguments", "Argumentos";
    COMMAND = "COMMAND", "COMANDO";
    COMMANDS = "Commands", "Comandos";
    OPTIONS = "Options", "Opciones";
    USAGE = "Usage:", "Uso:";
    ERROR = "error", "error";
    WARNING = "warning", "aviso";
    HINT = "hint", "sugerencia";
    REQUEST = "request", "solicitud";
    SUGGESTION = "Did you mean {value}?", "¿Quiso decir {value}?";
    TRACKING_NUMBER = "Tracking number", "Número de rastreo";
    STATUS = "Status", "Estado";
    ARRIVAL = "Arrival", "Llegada";
    ARRIVES_TODAY = "today", "hoy";
    ARRIVES_LATE = "late, due {date}", "con retraso, se esperaba el {date}";
    HAS_ARRIVED = "delivered {date}", "entregado el {date}";
    CREATED = "Created", "Creado";
    LABEL = "Label", "Etiqueta";
    LABELS = "Labels", "Etiquetas";
    LABEL_FILE = "Label file", "Archivo de etiqueta";
    IDEMPOTENCY_KEY = "Idempotency key", "Clave de idempotencia";
    TIME = "Time (UTC)", "Hora (UTC)";
    LOCATION = "Location", "Lugar";
    DETAILS = "Details", "Detalles";
    FORMAT = "Format", "Formato";
    FILE = "File", "Archivo";
    BYTES = "Bytes", "Bytes";
    KEY_NAME = "Key", "Clave";
    ENVIRONMENT = "Environment", "Entorno";
    COUNTRIES = "Countries", "Países";
    ALL_COUNTRIES = "all supported countries", "todos los países admitidos";
    VALID = "valid", "válido";
    INVALID = "invalid", "no válido";
    PREVIOUS_STATUS = "Previous status", "Estado anterior";
    ALREADY_VOID = "already voided", "ya estaba anulado";
    MANIFEST = "Manifest", "Manifiesto";
    AWB = "Air waybill", "Guía aérea";
    PARCELS = "Parcels", "Paquetes";
    WEIGHT = "Weight (kg)", "Peso (kg)";
    VALUE = "Declared value", "Valor declarado";
    FLIGHT = "Flight", "Vuelo";
    DEPARTURE = "Departure", "Salida";
    ROUTE = "Route", "Ruta";
    REFERENCE = "Reference", "Referencia";
    SUBMITTED = "Submitted", "Enviado";
    DESTINATION = "Destination", "Destino";
    ORDER_ID = "Order", "Pedido";
    ACTIVE = "Active", "Activa";
    VERSION = "Version", "Versión";
    REPRINTED = "Reprinted", "Reimpresa";
    VOIDED = "Voided", "Anulado";
    DELETED_LABELS = "Labels deleted", "Etiquetas borradas";
    DELETED_PARCELS = "Parcels deleted", "Paquetes borrados";
    DELETED_MANIFESTS = "Manifests deleted", "Manifiestos borrados";
    DELETED_EVENTS = "Tracking events deleted", "Eventos de rastreo borrados";
    DELETED_KEYS = "Idempotency keys deleted", "Claves de idempotencia borradas";
    DELETED_DELIVERIES = "Webhook deliveries deleted", "Entregas de webhooks borradas";
    RESET_AT = "Reset at", "Restablecido";

    // Notes beside results.
    REPLAYED = "An earlier request with the same idempotency key created this order; no new order was created. What is shown is the answer from then; see whether the parcel has changed since with: parcelo parcel show {number}", "Una solicitud anterior con la misma clave de idempotencia creó este pedido; no se creó otro. Se muestra la respuesta de entonces; para ver si el paquete cambió desde entonces, use: parcelo parcel show {number}";
    REPLAYED_VOID = "An earlier request with the same idempotency key voided these orders; nothing else was changed.", "Una solicitud anterior con la misma clave de idempotencia anuló estos pedidos; no se cambió nada más.";
    REPLAYED_MANIFEST = "This manifest was submitted before; it was not submitted again.", "Este manifiesto ya se había enviado; no se envió otra vez.";
    REPLAYED_LABEL = "An earlier request with the same idempotency key reprinted this label; no new version was created.", "Una solicitud anterior con la misma clave de idempotencia reimprimió esta etiqueta; no se creó otra versión.";
    NO_PARCELS = "No parcels found.", "No se encontraron paquetes.";
    PARTIAL_SEARCH = "There may be more: the search looks through only some of so many parcels. Type more of the text.", "Puede haber más: con tantos paquetes, la búsqueda solo revisa una parte. Escriba más texto.";
    SEARCH_HINT = "Check the text: it must be the beginning, or the last 4 or more characters, of a number, reference or air waybill, or words of the receiver's name.", "Revise el texto: debe ser el comienzo, o los últimos 4 o más caracteres, de un número, una referencia o una guía aérea, o palabras del nombre del destinatario.";
    AT_LEAST_PARCELS = "Matching parcels: at least {found}.", "Paquetes que coinciden: al menos {found}.";
    SEVERAL_PARCELS = "{found} parcels match.", "Coinciden {found} paquetes.";
    NONE_SO_FAR = "No parcel found so far.", "Todavía no se encontró ningún paquete.";
    NOT_ALL_SEARCHED = "Not all parcels were searched, because too many match a part of the text or the service is still indexing them: type more of the text, or try again later.", "No se buscó en todos los paquetes, porque demasiados coinciden con una parte del texto o el servicio todavía los está indexando: escriba más texto o inténtelo más tarde.";
    NARROW_SEARCH = "Only the newest are listed: type more of the text, or all of it.", "Solo se muestran los más recientes: escriba más texto o el texto completo.";
    SHOW_BY_NUMBER = "Show one of them by its tracking number.", "Para ver uno de ellos, use su número de rastreo.";
    PAGE_OF = "Page {page} of {pages}; parcels in total: {total}. Use --page for another page, --all for all pages.", "Página {page} de {pages}; paquetes en total: {total}. Use --page para ver otra página, --all para verlas todas.";
    ASK_RESET = "This permanently deletes all orders, labels, manifests and tracking data of your sandbox. Type yes to continue:", "Esto borra de forma permanente todos los pedidos, etiquetas, manifiestos y datos de rastreo de su entorno de pruebas. Escriba sí para continuar:";
    ASK_VOID = "Orders to void: {n}. This cannot be undone. Type yes to continue:", "Pedidos que se anularán: {n}. Esto no se puede deshacer. Escriba sí para continuar:";
    NOTHING_VOIDED = "Nothing was voided.", "No se anuló nada.";
    SAMPLE = "A sample order, destination: {country}. Replace names, addresses, contents and values with your own, then run: parcelo order validate FILE", "Un pedido de ejemplo, destino: {country}. Reemplace los nombres, las direcciones, el contenido y los valores por los suyos y ejecute: parcelo order validate ARCHIVO";
    COPIED_ORDER = "The order of {number}, without its tracking number and externalOrderId. Change what is different, then run: parcelo order create FILE", "El pedido de {number}, sin su número de rastreo ni su externalOrderId. Cambie lo que sea distinto y ejecute: parcelo order create ARCHIVO";
    SAMPLE_KEY = "idempotencyKey identifies this order: sending it again with the same key never creates a second parcel. Use a different key for each order.", "idempotencyKey identifica este pedido: enviarlo otra vez con la misma clave nunca crea un segundo paquete. Use una clave distinta para cada pedido.";
    SAMPLE_FIELDS = "Optional fields: trackingNumber (generated if absent; in the sandbox, SB-SUCCESS-… is delivered), externalOrderId, customerReference, companyName, email, line2, lengthCm, widthCm, heightCm, deliveryInstructions, countryOfOrigin, unitNetWeightKg, contentsCategory, incoterm. Use either weightKg or weightLbs.", "Campos opcionales: trackingNumber (se genera si falta; en el entorno de pruebas, SB-SUCCESS-… se entrega), externalOrderId, customerReference, companyName, email, line2, lengthCm, widthCm, heightCm, deliveryInstructions, countryOfOrigin, unitNetWeightKg, contentsCategory, incoterm. Use weightKg o weightLbs.";
    ATTEMPT_FAILED = "{call}: attempt {n} failed ({class}); retrying in {wait}", "{call}: el intento {n} falló ({class}); se reintenta en {wait}";
    CALL_ANSWERED = "{call}: status {status} on attempt {n}", "{call}: estado {status} en el intento {n}";
    CALL_UNANSWERED = "{call}: no response (attempts: {n})", "{call}: sin respuesta (intentos: {n})";

    // Usage errors.
    NO_COMMAND = "a command is required", "falta el comando";
    UNKNOWN_COMMAND = "unrecognized command '{value}'", "comando desconocido: '{value}'";
    UNEXPECTED_ARGUMENT = "unexpected argument '{value}'", "argumento inesperado: '{value}'";
    NOT_A_POSSIBLE_VALUE = "invalid value '{value}' for {option}; possible values: {values}", "valor no válido '{value}' para {option}; valores posibles: {values}";
    NO_VALUE = "a value is required for {option}", "falta un valor para {option}";
    MISSING_ARGUMENTS = "missing required arguments: {values}", "faltan argumentos obligatorios: {values}";
    REPEATED_OPTION = "{option} cannot be used multiple times", "{option} no se puede usar varias veces";
    CONFLICTING_OPTIONS = "{option} cannot be used with {other}", "{option} no se puede usar con {other}";
    OUT_OF_RANGE = "invalid value '{value}' for {option}: expected {min}-{max}", "valor no válido '{value}' para {option}: se espera {min}-{max}";
    TOO_SMALL = "invalid value '{value}' for {option}: expected {min} or more", "valor no válido '{value}' para {option}: se espera {min} o más";
    INVALID_COMMAND_LINE = "invalid command line", "línea de comandos no válida";
    SEE_HELP = "For more information, add --help to the command.", "Para más información, agregue --help al comando.";
    DID_YOU_MEAN = "Did you mean {value}? For more information, add --help to the command.", "¿Quiso decir {value}? Para más información, agregue --help al comando.";
    KNOWN_COMMANDS = "The commands are {values}. For more information, add --help to the command.", "Los comandos son {values}. Para más información, agregue --help al comando.";
    SEE_DIR = "-o sets the output format. Use --dir for the directory of label files.", "-o define el formato de salida. Use --dir para el directorio de las etiquetas.";
    KEY_IN_ARGUMENTS = "An API key must not be a command-line argument: other users can see it, and the shell history keeps it.", "Una clave de API no debe ser un argumento de la línea de comandos: otros usuarios pueden verla y el historial del intérprete la guarda.";
    GIVE_KEY = "Set PARCELO_API_KEY, create a profile with parcelo config init, or pass the key on standard input with --api-key-stdin.", "Defina PARCELO_API_KEY, cree un perfil con parcelo config init o pase la clave por la entrada estándar con --api-key-stdin.";
    REVOKE_KEY = "Set PARCELO_API_KEY, create a profile with parcelo config init, or pass the key on standard input with --api-key-stdin. If others may have seen this key, revoke it.", "Defina PARCELO_API_KEY, cree un perfil con parcelo config init o pase la clave por la entrada estándar con --api-key-stdin. Si otros pueden haber visto esta clave, revóquela.";
    NO_KEY = "No API key provided.", "Falta la clave de API.";
    MALFORMED_KEY = "Malformed API key: expected pk_live_ or pk_test_ followed by more characters, without spaces.", "Clave de API mal formada: se espera pk_live_ o pk_test_ y otros caracteres, sin espacios.";
    MISTYPED_KEY = "The API key looks mistyped: compare it with the one that was issued.", "La clave de API parece mal escrita: compárela con la que se emitió.";
    NO_BASE_URL = "No service address provided.", "Falta la dirección del servicio.";
    GIVE_BASE_URL = "Set PARCELO_BASE_URL, create a profile with parcelo config init, or add --base-url, for example http://127.0.0.1:8081.", "Defina PARCELO_BASE_URL, cree un perfil con parcelo config init o agregue --base-url, por ejemplo http://127.0.0.1:8081.";
    STDIN_TWICE = "Standard input can be read only once.", "La entrada estándar solo se puede leer una vez.";
    KEY_ELSEWHERE = "Set PARCELO_API_KEY, or read the other input from a file.", "Defina PARCELO_API_KEY o lea lo demás de un archivo.";
    STDIN_ONCE = "Use - once, and read the rest from files.", "Use - una sola vez y lea lo demás de archivos.";
    INVALID_VALUE = "invalid value '{value}' for {option}", "valor no válido '{value}' para {option}";
    NO_CONFIRMATION = "This deletes all data of your sandbox, and there is no terminal to ask for confirmation.", "Esto borra todos los datos de su entorno de pruebas y no hay terminal para pedir confirmación.";
    ADD_YES = "Add --yes to confirm.", "Agregue --yes para confirmar.";
    DECLINED = "Nothing was deleted.", "No se borró nada.";
    DATE_FORM = "Enter dates as 2026-01-31.", "Escriba las fechas como 2026-01-31.";
    LAST_DAY_BEFORE_FIRST = "The date after --to is before the date after --from.", "La fecha de --to es anterior a la de --from.";
    INVALID_COUNTRY = "'{value}' is not an assigned country code (ISO 3166-1), such as EC", "'{value}' no es un código de país asignado (ISO 3166-1), como EC";
    UNREADABLE = "Cannot read {file}: {reason}.", "No se puede leer {file}: {reason}.";
    UNREADABLE_ROW = "This version cannot read part of the service's response: {json}", "Esta versión no puede leer una parte de la respuesta del servicio: {json}";
    FILE_NOT_FOUND = "file not found", "el archivo no existe";
    PERMISSION_DENIED = "permission denied", "permiso denegado";
    IS_DIRECTORY = "it is a directory", "es un directorio";
    NOT_UTF8_FILE = "it is not UTF-8 text", "no es texto UTF-8";
    SAVE_AS_UTF8 = "Save it as UTF-8 and try again.", "Guárdelo como UTF-8 e inténtelo de nuevo.";
    SPECIFY_FILE = "Specify a file that you can read, or - for standard input.", "Indique un archivo que pueda leer o - para la entrada estándar.";
    UNWRITABLE = "Cannot write {file}: {reason}.", "No se puede escribir {file}: {reason}.";
    SPECIFY_WRITABLE = "Specify a file or directory that you can write to; with --label the directory must exist.", "Indique un archivo o directorio en el que pueda escribir; con --label el directorio debe existir.";
    FREE_SPACE = "Free some space on the disk.", "Libere espacio en el disco.";
    UNKNOWN_LABEL_ENDING = "{file}: the ending of a label file is .pdf, .zpl or .png.", "{file}: un archivo de etiqueta termina en .pdf, .zpl o .png.";
    NAME_FORMAT = "Use one of these endings, or add --format.", "Use una de estas terminaciones o agregue --format.";
    LABEL_TO_STDOUT = "--label needs a file: standard output is used for the result.", "--label necesita un archivo: la salida estándar se usa para el resultado.";
    GET_TO_STDOUT = "Run: parcelo label get NUMBER --dir -", "Ejecute: parcelo label get NÚMERO --dir -";
    MERGED_PNG = "A PNG file has one label: it cannot be merged.", "Un archivo PNG tiene una sola etiqueta: no se puede combinar.";
    MERGE_AS_PDF = "Use a .pdf or .zpl file with --merge, or add --format pdf or zpl.", "Indique en --merge un archivo .pdf o .zpl, o agregue --format pdf o zpl.";
    MERGE_TO_STDOUT = "--merge needs a file: standard output is used for the result.", "--merge necesita un archivo: la salida estándar se usa para el resultado.";
    NOT_JOINED = "The labels cannot be joined: the service's files are not as this version expects them.", "No se pueden unir las etiquetas: los archivos del servicio no son como esta versión los espera.";
    MERGE_TO_FILE = "Use --merge FILE.pdf or --merge FILE.zpl.", "Use --merge ARCHIVO.pdf o --merge ARCHIVO.zpl.";
    MERGE_FEWER = "Merge 100 labels at a time, use --format zpl, or update parcelo.", "Combine 100 etiquetas a la vez, use --format zpl o actualice parcelo.";
    REMOVE_LABELS = "Remove these numbers and try again; no label of this file was saved.", "Quite estos números e inténtelo de nuevo; no se guardó ninguna etiqueta de este archivo.";
    SEVERAL_TO_STDOUT = "Several labels can be written to standard output as ZPL only.", "Varias etiquetas solo se pueden escribir en la salida estándar como ZPL.";
    ZPL_OR_DIRECTORY = "Add --format zpl, or use --dir DIR.", "Agregue --format zpl o use --dir DIRECTORIO.";
    INVOICES_TO_STDOUT = "Only one invoice can be written to standard output.", "Solo se puede escribir una factura en la salida estándar.";
    INVOICE_DIRECTORY = "Use --dir DIR.", "Use --dir DIRECTORIO.";
    NOT_TO_TERMINAL = "A {format} file cannot be written to a terminal.", "Un archivo {format} no se puede escribir en una terminal.";
    REDIRECT = "Redirect standard output to a file or a pipe, or use --dir DIR.", "Redirija la salida estándar a un archivo o una tubería, o use --dir DIRECTORIO.";

    // Invalid input.
    INVALID_ORDER = "The order is invalid; nothing was sent.", "El pedido no es válido; no se envió nada.";
    INVALID_ORDERS = "Invalid orders: {bad} of {all}.", "Pedidos no válidos: {bad} de {all}.";
    INVALID_NUMBERS = "Invalid tracking numbers; nothing was sent.", "Números de rastreo no válidos; no se envió nada.";
    NUMBER_FORM = "{value}: a tracking number has 10-30 letters, digits and hyphens, and does not start or end with a hyphen.", "{value}: un número de rastreo tiene de 10 a 30 letras, dígitos y guiones, y no empieza ni termina con guion.";
    INVALID_REQUEST = "The request is invalid; nothing was sent.", "La solicitud no es válida; no se envió nada.";
    TABLE_OF_NUMBERS = "The input looks like a table or JSON; tracking numbers are expected, one per line.", "La entrada parece una tabla o JSON; se esperan números de rastreo, uno por línea.";
    NUMBERS_COLUMN = "parcelo writes only the numbers with -o numbers. From another table, take their column: cut -d, -f2 takes the second.", "parcelo escribe solo los números con -o numbers. De otra tabla, tome su columna: cut -d, -f2 toma la segunda.";
    NO_NUMBERS = "At least one tracking number is required.", "Se necesita al menos un número de rastreo.";
    INVALID_MANIFEST_ID = "Invalid manifest; nothing was sent.", "Manifiesto no válido; no se envió nada.";
    MANIFEST_FORM = "{value} is not a manifest: enter its ID, which starts with man_, or its air waybill, such as 176-12345675.", "{value} no es un manifiesto: indique su identificador, que empieza con man_, o su guía aérea, como 176-12345675.";
    NO_MANIFEST = "No manifest has the air waybill {awb}.", "Ningún manifiesto tiene la guía aérea {awb}.";
    SEVERAL_ORDERS = "The file has {n} orders, and order create takes one.", "El archivo tiene {n} pedidos y order create acepta uno.";
    TABLE_OF_ORDERS = "{file} is a table, and this command takes orders as JSON.", "{file} es una tabla, y este comando acepta pedidos en JSON.";
    USE_IMPORT = "Use parcelo order import FILE --labels DIR, which creates all orders of a file; with --dry-run it only checks them.", "Use parcelo order import ARCHIVO --labels DIRECTORIO, que crea todos los pedidos de un archivo; con --dry-run solo los revisa.";
    NO_ORDERS = "The file contains no orders.", "El archivo no contiene pedidos.";

    // Failed calls, and what to do about them.
    UNKNOWN_SET_FIELD = "--set: an order has no field {field}", "--set: un pedido no tiene el campo {field}";
    AT_ADDRESS = "Address: {address}", "Dirección: {address}";
    FIX_FIELDS = "Correct these fields and try again.", "Corrija estos campos e inténtelo de nuevo.";
    FIX_REQUEST = "Correct the request and try again.", "Corrija la solicitud e inténtelo de nuevo.";
    CHECK_KEY = "Check PARCELO_API_KEY and the address: sandbox keys (pk_test_) work in the sandbox only, live keys (pk_live_) in production only.", "Revise PARCELO_API_KEY y la dirección: las claves de prueba (pk_test_) solo funcionan en el entorno de pruebas y las de producción (pk_live_) solo en producción.";
    CHECK_COUNTRIES = "Use a key that is allowed to ship to this country; parcelo health shows the countries of this key.", "Use una clave que permita enviar a ese país; parcelo health muestra los países de esta clave.";
    CHECK_NUMBER = "Check the number: a key can access the parcels of its own account and environment only.", "Revise el número: una clave solo tiene acceso a los paquetes de su propia cuenta y entorno.";
    CHECK_CALL = "Check the method and the path.", "Revise el método y la ruta.";
    CHECK_ADDRESS = "Check the address in PARCELO_BASE_URL or --base-url.", "Revise la dirección en PARCELO_BASE_URL o --base-url.";
    CHECK_MANIFEST = "Check the ID: a key can access the manifests of its own account and environment only.", "Revise el identificador: una clave solo tiene acceso a los manifiestos de su propia cuenta y entorno.";
    NOT_VOIDABLE = "An order can be voided only until its parcel is on a manifest or handed over to a carrier.", "Un pedido solo se puede anular mientras su paquete no esté en un manifiesto ni en manos de un transportista.";
    REMOVE_PARCELS = "Remove these parcels and try again; nothing was submitted.", "Quite estos paquetes e inténtelo de nuevo; no se envió nada.";
    OTHER_MANIFEST = "Use another air waybill, or see what was submitted: parcelo manifest show {id}", "Use otra guía aérea o vea lo que se envió: parcelo manifest show {id}";
    OTHER_KEY = "If this is a different request, use a different idempotency key.", "Si es otra solicitud, use otra clave de idempotencia.";
    ORDER_DIFFERS = "The order was not created: an order with different content exists as {number}.", "El pedido no se creó: ya existe un pedido con otro contenido, {number}.";
    ORDER_DIFFERS_BY_REFERENCE = "The order {reference} was not created: an order with different content exists as {number}.", "El pedido {reference} no se creó: ya existe un pedido con otro contenido, {number}.";
    ORDER_DIFFERS_HINT = "If {number} is void already, or if yours is another order, send it under a new idempotency key (the field idempotencyKey). To correct {number}, void it first: parcelo order void {number}", "Si {number} ya está anulado, o si el suyo es otro pedido, envíelo con una clave de idempotencia nueva (el campo idempotencyKey). Para corregir {number}, anúlelo primero: parcelo order void {number}";
    CREATE_NEW_ORDER = "If it is still to be shipped, create a new order with a new idempotency key.", "Si aún debe enviarse, cree un pedido nuevo con otra clave de idempotencia.";
    OTHER_NUMBER = "Use another trackingNumber, or leave it out to have one generated.", "Use otro trackingNumber u omítalo para que se genere uno.";
    WAIT = "Wait {n} s, then try again.", "Espere {n} s e inténtelo de nuevo.";
    WAIT_A_WHILE = "Wait a while, then try again.", "Espere un rato e inténtelo de nuevo.";
    TRY_AGAIN = "Nothing was executed. Check the address and the network, then try again.", "No se ejecutó nada. Revise la dirección y la red e inténtelo de nuevo.";
    SERVICE_FAILED = "The service failed; nothing was executed. Try again later.", "El servicio falló; no se ejecutó nada. Inténtelo de nuevo más tarde.";
    CHECK_SERVICE_ADDRESS = "Nothing was executed. Check that the address is that of the service, and that no proxy answers in its place.", "No se ejecutó nada. Revise que la dirección sea la del servicio y que ningún proxy responda en su lugar.";
    CHECK_CERTIFICATE = "Nothing was executed. Check that the address is correct and its server supports https. If its certificate was issued by a private authority, set SSL_CERT_FILE to that authority's PEM file.", "No se ejecutó nada. Revise que la dirección sea correcta y que su servidor admita https. Si su certificado es de una autoridad privada, defina SSL_CERT_FILE con el archivo PEM de esa autoridad.";
    RESUME_ORDER = "The outcome is unknown: the request may have been executed. Run the same command again with the same order: its idempotency key {key} prevents a second parcel (for 24 hours).", "El resultado es desconocido: puede que la solicitud se haya ejecutado. Ejecute otra vez el mismo comando con el mismo pedido: su clave de idempotencia {key} evita un segundo paquete (durante 24 horas).";
    RESUME_WITH_KEY = "The outcome is unknown: the request may have been executed. Run the same command again with --idempotency-key {key}, which prevents it from being executed twice (for 24 hours).", "El resultado es desconocido: puede que la solicitud se haya ejecutado. Ejecute otra vez el mismo comando con --idempotency-key {key}, que evita que se ejecute dos veces (durante 24 horas).";
    RESUME_MANIFEST = "The outcome is unknown: the request may have been executed. Run the same command again: the same parcels under the same air waybill are never submitted twice.", "El resultado es desconocido: puede que la solicitud se haya ejecutado. Ejecute otra vez el mismo comando: un manifiesto con los mismos paquetes y la misma guía aérea nunca se envía dos veces.";
    RESUME_CHECK_FIRST = "The outcome is unknown: the request may have been executed. Check with parcelo parcel list, and run the same command again if necessary.", "El resultado es desconocido: puede que la solicitud se haya ejecutado. Verifíquelo con parcelo parcel list y, si hace falta, ejecute otra vez el mismo comando.";
    INTERRUPTED = "Interrupted.", "Interrumpido.";
    PARTLY_FAILED = "{done} of {all} succeeded; {failed} failed.", "Completados: {done} de {all}; fallidos: {failed}.";
    ALL_FAILED = "None of {all} succeeded.", "No se completó ninguno de {all}.";
    LABEL_UNSAVED = "The order was created, but its label could not be saved: {reason}", "El pedido se creó, pero no se pudo guardar su etiqueta: {reason}";
    LABEL_VOIDED = "The order was created earlier and its parcel was voided since: its label is no longer available.", "El pedido se creó antes y su paquete se anuló después: su etiqueta ya no está disponible.";
    GET_LABEL = "Get the label with: parcelo label get {number}", "Obtenga la etiqueta con: parcelo label get {number}";
    OUTPUT_LOST = "Cannot write to standard output: {reason}.", "No se puede escribir en la salida estándar: {reason}.";
    NOT_STARTED = "Cannot start: {reason}.", "No se puede iniciar: {reason}.";
    BUG = "This is a bug in parcelo ({place}). Please report it with the command that you ran.", "Este es un error de parcelo ({place}). Repórtelo junto con el comando que ejecutó.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    #[test]
    fn both_languages_have_the_same_placeholders() {
        let same_word = ["ERROR", "BYTES", "URL", "N", "AS_IS", "CHECK_DNS", "IN_SECONDS"];
        let helps = help::COMMAND_HELP.iter().chain(help::ARGUMENT_HELP).chain(help::VALUE_NAMES);
        for (name, text) in ALL.iter().chain(tools::ALL).chain(import::ALL).chain(helps) {
            assert!(!text.en.is_empty() && !text.es.is_empty(), "{name}");
            assert_eq!(placeholders(text.en), placeholders(text.es), "{name}");
            assert_eq!(text.en == text.es, same_word.contains(name), "{name}");
        }
    }

    #[test]
    fn placeholders_are_filled_in() {
        let message = WAIT.with(&[("n", "3")]);
        assert_eq!(message.pick(Language::En), "Wait 3 s, then try again.");
        assert_eq!(message.pick(Language::Es), "Espere 3 s e inténtelo de nuevo.");
    }
}
