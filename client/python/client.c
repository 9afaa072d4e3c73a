/* client: cured.Client and its connections, and which client answers where none is named.
 *
 * A client has as many links as threads ever used it at once. A thread takes an idle link with the GIL held, may release the
 * GIL while the link is busy, and gives the link back. After a fork a child finds idle links only; links that were busy in
 * other threads are never used again. Regions that nobody wants any more go when their link is idle.
 *
 * Thread: with the GIL. Owner: a client owns its links, busy or idle. */
#include <stdatomic.h>
#include <string.h>

#include "client/lib/conn/look.h"
#include "client/python/extension.h"

/* What a client shows and trusts: in the order of client_new's names. */
enum { TLS_CA, TLS_CERTIFICATE, TLS_KEY, TOKEN, TOKEN_FILE, SHOWN };

struct cr_py_client {
    PyObject_HEAD PyObject *address; /* str */
    PyObject *shown[SHOWN];          /* bytes, or NULL: not given */
    uint32_t threads, timeout_ms;
    cr_py_link *idle;
    bool closed;
};

PyTypeObject *cr_py_client_type;
static cr_py_client *local_client, *auto_client;

/* ---- Regions ---- */

static void link_unuse(cr_py_link *link) {
    if (--link->uses == 0) PyMem_Free(link);
}

static void kept_free(cr_py_kept *kept) {
    cr_list_remove(&kept->of_link);
    cured_region_free(kept->region); /* also where the connection is closed */
    if (kept->region != NULL && kept->link->conn != NULL && !kept->link->watched)
        cured_process(kept->link->conn, NULL); /* tells the daemon now */
    link_unuse(kept->link);
    PyMem_Free(kept);
}

cured_region *cr_py_kept_find(const cr_py_kept *list, const cr_py_link *link) {
    for (; list != NULL; list = list->next)
        if (list->link == link && list->region != NULL) return list->region;
    return NULL;
}

/* Regions that were let go of, and those of links that are closed. */
static void forget_gone(cr_py_kept **list) {
    while (*list != NULL) {
        cr_py_kept *kept = *list;
        if (kept->link->conn != NULL && kept->region != NULL) {
            list = &kept->next;
        } else {
            *list = kept->next;
            kept_free(kept);
        }
    }
}

bool cr_py_kept_add(cr_py_kept **list, cr_py_link *link, cured_region *region) {
    cr_py_kept *kept = PyMem_Malloc(sizeof *kept);
    if (kept == NULL) {
        cured_region_free(region);
        PyErr_NoMemory();
        return false;
    }
    forget_gone(list);
    *kept = (cr_py_kept){.next = *list, .link = link, .region = region};
    cr_list_append(&link->kept, &kept->of_link);
    link->uses++;
    *list = kept;
    return true;
}

void cr_py_kept_drop(cr_py_kept **list) {
    while (*list != NULL) {
        cr_py_kept *kept = *list;
        *list = kept->next;
        if (kept->link->busy) {
            kept->next = kept->link->trash;
            kept->link->trash = kept;
        } else {
            kept_free(kept);
        }
    }
}

static void forget(cr_py_link *link) {
    for (cr_list *l = link->kept.next; l != &link->kept; l = l->next) {
        cr_py_kept *kept = cr_container(l, cr_py_kept, of_link);
        cured_region_free(kept->region);
        kept->region = NULL;
    }
    if (link->conn != NULL) cured_process(link->conn, NULL);
}

void cr_py_client_forget(const cr_py_client *client, cr_py_link *link) {
    forget(link);
    for (cr_py_link *idle = client->idle; idle != NULL; idle = idle->next) forget(idle);
}

/* ---- Links ---- */

PyObject *cr_py_look_seats(PyObject *module, PyObject *cores) {
    (void)module;
    const unsigned long n = cores != Py_None ? PyLong_AsUnsignedLong(cores) : 0;
    if (PyErr_Occurred()) return NULL;
    return PyLong_FromLong(cr_cl_look_seats((uint32_t)n));
}

static void link_close(cr_py_link *link) {
    cured_close(link->conn);
    link->conn = NULL;
    link_unuse(link);
}

/* A daemon that this user may not use is passed over, but not in silence. False with an exception. */
static bool warn_of_permission(const cured_conn *conn) {
    cured_error error;
    if (cured_auto_reason(conn, NULL) != CURED_PERMISSION_DENIED) return true;
    cured_auto_reason(conn, &error);
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "answered in this process: %s", error.text) == 0;
}

static const char *shown(const cr_py_client *client, int which) {
    return client->shown[which] != NULL ? PyBytes_AsString(client->shown[which]) : NULL;
}

cr_py_link *cr_py_link_take(cr_py_client *client) {
    cr_py_link *link = client->idle;
    if (link != NULL) {
        client->idle = link->next;
        link->busy = true;
        return link;
    }
    if (client->closed) {
        PyErr_SetString(PyExc_ValueError, "the client is closed");
        return NULL;
    }
    PyObject *address = PyUnicode_EncodeFSDefault(client->address);
    link = address != NULL ? PyMem_Calloc(1, sizeof *link) : NULL;
    if (link == NULL) {
        Py_XDECREF(address);
        return PyErr_NoMemory(), NULL;
    }
    cr_list_init(&link->kept);
    const char *text = PyBytes_AsString(address);
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    cured_error error;
    cured_status status;
    options.threads = client->threads;
    options.tls_ca = shown(client, TLS_CA);
    options.tls_certificate = shown(client, TLS_CERTIFICATE);
    options.tls_key = shown(client, TLS_KEY);
    options.token = shown(client, TOKEN);
    options.token_file = shown(client, TOKEN_FILE);
    PyThreadState *thread = PyEval_SaveThread();
    status = cured_connect(text, &options, &link->conn, &error);
    PyEval_RestoreThread(thread);
    Py_DECREF(address);
    if (status != CURED_OK) {
        PyMem_Free(link);
        cr_py_raise_as_it_is(&error);
        return NULL;
    }
    if (!warn_of_permission(link->conn)) {
        cured_close(link->conn);
        PyMem_Free(link);
        return NULL;
    }
    link->local = cured_fd(link->conn) < 0 && strncmp(cured_server(link->conn), "embedded", 8) == 0;
    link->busy = true;
    link->uses = 1; /* the client's */
    return link;
}

void cr_py_link_give(cr_py_client *client, cr_py_link *link) {
    link->busy = false;
    link->next = client->idle;
    client->idle = link;
    cr_py_kept_drop(&link->trash);
    if (client->closed) {
        client->idle = link->next;
        link_close(link);
    }
}

uint32_t cr_py_client_timeout_ms(const cr_py_client *client) { return client->timeout_ms; }

/* ---- The type ---- */

/* None: the thread pool of the process. False with an exception. */
static bool take_threads(PyObject *given, uint32_t *threads) {
    *threads = CURED_THREAD_POOL;
    if (given == Py_None) return true;
    const long n = PyLong_AsLong(given);
    if (n == -1 && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    if (n < 1 || n > 1024) {
        PyErr_Format(PyExc_ValueError, "threads: %R, must be 1 to 1,024, or None", given);
        return false;
    }
    *threads = (uint32_t)n;
    return true;
}

static bool take_timeout(PyObject *given, uint32_t *timeout_ms) {
    *timeout_ms = 0;
    if (given == Py_None) return true;
    double seconds = PyFloat_AsDouble(given);
    if (seconds == -1 && PyErr_Occurred()) return false;
    if (!(seconds > 0 && seconds <= 86400)) {
        PyErr_SetString(PyExc_ValueError, "timeout: must be above 0 and at most 86,400 seconds, or None");
        return false;
    }
    *timeout_ms = seconds < 0.001 ? 1 : (uint32_t)(seconds * 1000);
    return true;
}

static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"address", "threads", "timeout",    "tls_ca", "tls_certificate",
                            "tls_key", "token",   "token_file", NULL};
    PyObject *address = Py_None, *threads = Py_None, *timeout = Py_None,
             *shows[SHOWN] = {Py_None, Py_None, Py_None, Py_None, Py_None};
    uint32_t timeout_ms, thread_count;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOOOOOO:Client", names, &address, &threads, &timeout,
                                     &shows[TLS_CA], &shows[TLS_CERTIFICATE], &shows[TLS_KEY], &shows[TOKEN],
                                     &shows[TOKEN_FILE]))
        return NULL;
    if (!take_timeout(timeout, &timeout_ms) || !take_threads(threads, &thread_count)) return NULL;
    address = address == Py_None ? PyUnicode_FromString("auto:") : PyOS_FSPath(address);
    if (address != NULL && !PyUnicode_Check(address)) {
        Py_DECREF(address);
        return PyErr_Format(PyExc_TypeError, "address: must be a str or a path of str");
    }
    if (address != NULL && PyUnicode_FindChar(address, 0, 0, PyUnicode_GetLength(address), 1) >= 0) {
        Py_DECREF(address);
        return PyErr_Format(PyExc_ValueError, "address: it has a NUL in it");
    }
    cr_py_client *client = address != NULL ? (cr_py_client *)PyType_GenericAlloc(type, 0) : NULL;
    if (client == NULL) {
        Py_XDECREF(address);
        return NULL;
    }
    client->address = address;
    client->threads = thread_count;
    client->timeout_ms = timeout_ms;
    for (int i = 0; i < SHOWN; i++) {
        if (shows[i] == Py_None || PyUnicode_FSConverter(shows[i], &client->shown[i])) continue;
        Py_DECREF(client);
        return NULL;
    }
    return (PyObject *)client;
}

static void close_idle(cr_py_client *client) {
    client->closed = true;
    while (client->idle != NULL) {
        cr_py_link *link = client->idle;
        client->idle = link->next;
        link_close(link);
    }
}

static void client_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    close_idle((cr_py_client *)self);
    Py_XDECREF(((cr_py_client *)self)->address);
    for (int i = 0; i < SHOWN; i++) Py_XDECREF(((cr_py_client *)self)->shown[i]);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_self(self);
    Py_DECREF(type);
}

static PyObject *client_close(PyObject *self, PyObject *unused) {
    (void)unused;
    close_idle((cr_py_client *)self);
    Py_RETURN_NONE;
}

static PyObject *client_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *client_exit(PyObject *self, PyObject *args) {
    (void)args;
    return client_close(self, NULL);
}

static PyObject *client_server(PyObject *self, void *unused) {
    cr_py_client *client = (cr_py_client *)self;
    cr_py_link *link = cr_py_link_take(client);
    cr_py_job job = {.call = NULL};
    cured_error error;
    cured_options options = CURED_OPTIONS_INIT;
    PyObject *name = NULL;
    (void)unused;
    if (link == NULL) return NULL;
    options.timeout_ms = client->timeout_ms;
    if (cured_ping(link->conn, &options, &job.call, &error) != CURED_OK)
        cr_py_raise(&error);
    else if (cr_py_job_run(&job, link, 0))
        name = PyUnicode_FromString(cured_server(link->conn));
    cr_py_job_end(&job);
    cr_py_link_give(client, link);
    return name;
}

static PyObject *client_repr(PyObject *self) {
    cr_py_client *client = (cr_py_client *)self;
    return PyUnicode_FromFormat("cured.Client(%R%s)", client->address, client->closed ? ", closed" : "");
}

static cr_py_client *lazily(cr_py_client **client, const char *address) {
    if (*client == NULL) *client = (cr_py_client *)PyObject_CallFunction((PyObject *)cr_py_client_type, "s", address);
    return *client;
}

cr_py_client *cr_py_client_local(void) { return lazily(&local_client, "embedded:"); }

cr_py_client *cr_py_client_auto(void) { return lazily(&auto_client, "auto:"); }

bool cr_py_client_ready(PyObject *module) {
    static PyMethodDef own[] = {{"close", client_close, METH_NOARGS,
                                 "close($self, /)\n--\n\nEnds the connections; calls of other threads end first."},
                                {"__enter__", client_enter, METH_NOARGS, NULL},
                                {"__exit__", client_exit, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
    static PyGetSetDef properties[] = {{"server", client_server, NULL, "Who answers: \"cured/0.2.0\".", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyMethodDef *methods = cr_py_ops_methods(own, CR_PY_OF_CLIENT);
    if (methods == NULL) return false;
    PyType_Slot slots[] = {{Py_tp_new, client_new},
                           {Py_tp_dealloc, client_dealloc},
                           {Py_tp_repr, client_repr},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, properties},
                           {Py_tp_doc,
                            "Client(address=None, *, threads=None, timeout=None, tls_ca=None, tls_certificate=None, "
                            "tls_key=None, token=None, token_file=None)\n--\n\n"
                            "Answers by the daemon at an address, or in this process."},
                           {0, NULL}};
    PyType_Spec spec = {"cured.Client", sizeof(cr_py_client), 0, Py_TPFLAGS_DEFAULT, slots};
    cr_py_client_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return cr_py_client_type != NULL && PyModule_AddType(module, cr_py_client_type) == 0;
}
