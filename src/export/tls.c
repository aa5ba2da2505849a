/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

struct tls {
	SSL_CTX *context;
	SSL *session; /* NULL: none */
	char name[EXPORT_HOST_MAX];
};

/* Errors of the system, as of a file that is not there, are those of errno. */
static const char *reason(void)
{
	const unsigned long code = ERR_get_error();
	const char *text = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
						  : ERR_reason_error_string(code);

	return text != NULL ? text : "no reason is given";
}

static int load(struct tls *tls, const struct export_target *target, struct error *error)
{
	const char *file = target->authority;
	bool loaded;

	ERR_clear_error();
	if (*file != '\0')
		loaded = SSL_CTX_load_verify_file(tls->context, file) == 1;
	else
		loaded = SSL_CTX_set_default_verify_paths(tls->context) == 1;
	if (loaded && *target->certificate != '\0') {
		file = target->certificate;
		loaded = SSL_CTX_use_certificate_chain_file(tls->context, file) == 1;
	}
	if (loaded && *target->key != '\0') {
		file = target->key;
		loaded = SSL_CTX_use_PrivateKey_file(tls->context, file, SSL_FILETYPE_PEM) == 1 &&
			 SSL_CTX_check_private_key(tls->context) == 1;
	}
	if (!loaded)
		return error_set(
			error, -EINVAL, "%.200s: not to be used for TLS: %s", file, reason());
	return 0;
}

int tls_create(struct tls **out, const struct export_target *target, struct error *error)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	int ret;

	if (tls != NULL)
		tls->context = SSL_CTX_new(TLS_client_method());
	if (tls == NULL || tls->context == NULL) {
		tls_destroy(tls);
		return error_set(error, -ENOMEM, "no memory for TLS");
	}
	SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(
		tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	snprintf(tls->name, sizeof(tls->name), "%s", target->name);
	ret = load(tls, target, error);
	if (ret < 0)
		tls_destroy(tls);
	else
		*out = tls;
	return ret;
}

void tls_destroy(struct tls *tls)
{
	if (tls == NULL)
		return;
	SSL_free(tls->session);
	SSL_CTX_free(tls->context);
	free(tls);
}

/* The certificate has to be for the name, or for the address where that is one. */
static bool expect(SSL *session, char *name)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name) == 1;
	return SSL_set1_host(session, name) == 1 && SSL_set_tlsext_host_name(session, name) == 1;
}

int tls_begin(struct tls *tls, int fd)
{
	SSL_free(tls->session);
	tls->session = SSL_new(tls->context);
	if (tls->session == NULL || SSL_set_fd(tls->session, fd) != 1 ||
		!expect(tls->session, tls->name))
		return -ENOMEM;
	return 0;
}

static int code_of(SSL *session, int ret)
{
	const int code = SSL_get_error(session, ret);

	return code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE ? -EAGAIN : -EPROTO;
}

int tls_shake(struct tls *tls, char *why, size_t size)
{
	ERR_clear_error();

	const int ret = SSL_connect(tls->session);
	const int code = ret == 1 ? 0 : code_of(tls->session, ret);
	const long verified = SSL_get_verify_result(tls->session);

	if (code == -EPROTO)
		snprintf(why, size, "%s",
			verified != X509_V_OK ? X509_verify_cert_error_string(verified) : reason());
	return code;
}

ssize_t tls_put(struct tls *tls, const void *bytes, size_t length)
{
	size_t taken = 0;

	ERR_clear_error();

	const int ret = SSL_write_ex(tls->session, bytes, length, &taken);

	return ret == 1 ? (ssize_t)taken : code_of(tls->session, ret);
}

void tls_end(struct tls *tls)
{
	if (tls->session != NULL && SSL_is_init_finished(tls->session))
		(void)SSL_shutdown(tls->session);
	SSL_free(tls->session);
	tls->session = NULL;
}
