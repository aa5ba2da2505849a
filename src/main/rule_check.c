/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rule_check.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/say.h"
#include "base/text.h"
#include "export/json.h"
#include "main/lone_rules.h"
#include "main/run_config_rules.h"
#include "rule/pattern.h"
#include "rule/replies.h"
#include "rule/setup.h"

#define EXIT_MISUSED 2

#define FILE_NAME_MAX 160

/* Later rules are not held against those before them: a list of any length is to be checked in no time. */
#define COMPARED_RULES 32768
/* Nor are more than so many looked at to say where rules may run: a second's work. */
#define FORESEEN_VISITS (256u * 1024 * 1024)

enum option_id {
	OPTION_JSON = UCHAR_MAX + 1,
	OPTION_RULES_REPLIES,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"rules-replies", required_argument, NULL, OPTION_RULES_REPLIES},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: millrace rule check [FILE] [--json] [--rules-replies WORD]\n"
	"\n"
	"Checks the grammar of rules: lines of testpmd's flow syntax, one command a line, and\n"
	"the set and meter lines that they need. Says \"ok\" for each, or what is wrong and "
	"where,\n"
	"as FILE:LINE:COLUMN: error: what. Empty lines and comments (#) are skipped. Without\n"
	"FILE, or with -, it reads standard input. No engine is asked, and no card.\n"
	"\n"
	"Of a rule that is right, it also says which word of it the engine does not do in\n"
	"software, or warns: it contradicts itself, no rule of the file jumps to its group,\n"
	"or it matches nothing that another rule of the file does not match before it. Else\n"
	"it says where the rule runs: in software, with the reason, or in NICs that take it,\n"
	"too. Behind some ten thousands of rules that is not known where it would have to be\n"
	"compared with all of them. A running engine knows more of that: flow validate.\n"
	"\n"
	"  --json               one JSON object a line: file, line, ok; and the rule as it is\n"
	"                       printed, or column, error, and whether the line was parsed and a\n"
	"                       word in it is refused (parsed); of a rule that is right, software\n"
	"                       (true or false), why not, where (software, nic or unknown)\n"
	"                       and why, notes and warnings\n"
	"  --rules-replies WORD\n"
	"                       as for millrace run: match (default) or follow\n"
	"\n"
	"Exit status: 0 when all are right, 1 when one is not or FILE cannot be read, 2 for a\n"
	"wrong command line.\n";

struct checking {
	FILE *file;
	char *text; /* of the whole file */
	size_t size;
	const char *name;    /* printable */
	uint64_t jumped;     /* a bit for each group that some line jumps to */
	unsigned beginnings; /* rule_of_beginnings() of all lines together */
	bool conversations;  /* some line may ask for them */
	bool json, wrong;
	unsigned line;
	struct rule_setup *setup;
	struct lone_rules lone; /* in which the rules are put, as an engine would */
	unsigned *line_of;	/* by slot of these */
	uint32_t visits;	/* that are left of FORESEEN_VISITS */
};

/* What an engine would say of a rule. */
struct opinion {
	const struct checking *checking;
	uint16_t port; /* of the rule */
	bool asked;    /* the line makes a rule or what rules share, or would */
	bool software;
	struct error why;	    /* not */
	struct error note, warning; /* empty: none */
	uint32_t slot;		    /* of the rule that was made, or RULES_NONE */
	bool foreseen;		    /* it is told where it may run: */
	bool known;		    /* or why that is not known, in `alone` */
	bool for_nics;		    /* NICs may have it, if they take it; else software alone, */
	struct error alone;	    /* and why */
};

/* "key":"text" with a comma in front. */
static void print_text(const char *key, const char *text)
{
	char *string = export_json_string(text);

	printf(",\"%s\":%s", key, string ? string : "null");
	free(string);
}

/* The keys that all lines have, the brace left open. */
static void begin_json(const struct checking *checking, bool ok)
{
	char *name = export_json_string(checking->name);

	printf("{\"file\":%s,\"line\":%u,\"ok\":%s", name ? name : "null", checking->line,
		ok ? "true" : "false");
	free(name);
}

/* "#N of port P": the line of the file that made this rule; 0: none did. */
static unsigned line_of_rule(const struct checking *checking, const char *words)
{
	const char *number = strchr(words, '#');
	struct rules_view view;
	unsigned port;
	uint32_t rule;

	if (number == NULL || sscanf(number, "#%" SCNu32 " of port %u", &rule, &port) != 2 ||
		rules_get(checking->lone.rules, (uint16_t)port, rule, &view) < 0)
		return 0;
	return checking->line_of[view.slot];
}

/* Behind those before it. */
static void add_warning(struct opinion *opinion, const char *what)
{
	char *text = opinion->warning.text;
	const size_t length = strlen(text);

	snprintf(text + length, sizeof(opinion->warning.text) - length, "%s%s",
		length > 0 ? "; " : "", what);
}

/* An engine names rules by their numbers; here they are lines of the file. */
static void take_said(void *context, const char *line)
{
	static const char note[] = "note: ", warning[] = "warning: ";
	struct opinion *opinion = context;
	const unsigned other = line_of_rule(opinion->checking, line);
	char shadow[80];
	struct rules_view view;
	uint32_t number;

	if (sscanf(line, "Flow rule #%" SCNu32 " created", &number) == 1) {
		if (rules_get(opinion->checking->lone.rules, opinion->port, number, &view) == 0) {
			opinion->checking->line_of[view.slot] = opinion->checking->line;
			opinion->slot = view.slot;
		}
		return;
	}
	if (other != 0) {
		snprintf(shadow, sizeof(shadow),
			"line %u matches all that this rule matches before it", other);
		add_warning(opinion, shadow);
		return;
	}
	if (strcmp(line, "warning: " RULES_NO_BEGINNING) == 0)
		return;
	if (sscanf(line, "warning: " RULES_NO_JUMP "%" SCNu32, &number) == 1 &&
		opinion->checking->jumped >> number % 64 & 1)
		return;
	if (strncmp(line, note, strlen(note)) == 0)
		error_set(&opinion->note, 0, "%s", line + strlen(note));
	else if (strncmp(line, warning, strlen(warning)) == 0)
		add_warning(opinion, line + strlen(warning));
}

/* Tells whether the rule may run in NICs, as far as that depends on no port's abilities. `room`: there is some for one more rule. */
static void foresee(struct checking *checking, const struct rule_command *command, const char *line,
	size_t length, bool room, struct opinion *opinion)
{
	const char *action = NULL;
	struct rules_view view;

	if (opinion->slot != RULES_NONE) {
		view.nic = rules_nic_foresee(
			checking->lone.rules, opinion->slot, &checking->visits, &view.behind);
		action = rule_nic_action(command);
	} else if (rules_foresee(checking->lone.rules, line, length, &checking->visits, &view,
			   &action) < 0) {
		return;
	}
	opinion->foreseen = true;
	opinion->for_nics = view.nic == RULE_NIC_FITS;
	/* one that was not made comes behind others that were not made, either */
	opinion->known = view.nic != RULE_NIC_PENDING &&
			 (view.nic != RULE_NIC_FITS || opinion->slot != RULES_NONE || room);
	if (!opinion->known)
		error_set(&opinion->alone, 0,
			"it was not compared with all rules before it, as they are too many");
	else if (view.nic == RULE_NIC_ACTIONS && action != NULL)
		error_set(&opinion->alone, 0, "action '%s' is not given to NICs", action);
	else if (view.nic == RULE_NIC_BEHIND)
		error_set(&opinion->alone, 0,
			"line %u comes before it, matches some of its packets, and does not drop "
			"them",
			checking->line_of[view.behind]);
	else
		error_set(&opinion->alone, 0, "%s", rule_nic_words(view.nic));
}

/* Does what the line says with rules of our own. */
static void ask_rules(struct checking *checking, const struct rule_command *command,
	const char *line, size_t length, struct opinion *opinion)
{
	const enum rule_verb verb = command->verb;
	unsigned column;
	int ret;

	*opinion = (struct opinion){
		.checking = checking,
		.port = command->port,
		.slot = RULES_NONE,
		.asked = verb == RULE_CREATE || verb == RULE_VALIDATE ||
			 (verb >= RULE_METER_PROFILE && verb <= RULE_METER_CHANGE) ||
			 (verb >= RULE_INDIRECT_CREATE && verb <= RULE_INDIRECT_QUERY),
	};
	if (!opinion->asked && verb != RULE_SET && verb != RULE_DESTROY && verb != RULE_FLUSH)
		return;
	ret = rules_do(checking->lone.rules, command, line, length, &column, take_said, opinion,
		&opinion->why);
	/* without room it was understood */
	opinion->software = ret == 0 || ret == -ENOSPC || ret == -EAGAIN;
	if (opinion->software && (verb == RULE_CREATE || verb == RULE_VALIDATE))
		foresee(checking, command, line, length, ret == 0, opinion);
	rules_settled(checking->lone.rules,
		atomic_load_explicit(rules_generation(checking->lone.rules), memory_order_relaxed));
}

/* Whether a rule lets conversations begin, needs one that has begun, or drops all, by its words alone. */
static unsigned beginnings_of(const struct rule_command *command)
{
	const struct rule_ground ground = {0};
	struct rule_refusal refusal;
	struct classifier_rule rule;
	struct error error;
	bool drops = false;

	if (command->verb != RULE_CREATE ||
		rule_pattern_read(command, &ground, &rule, &refusal, &error) < 0)
		return command->verb == RULE_CREATE ? RULE_LETS_BEGIN : 0;
	for (const struct rte_flow_action *action = command->actions[0];
		action != NULL && action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		drops = drops || action->type == RTE_FLOW_ACTION_TYPE_DROP ||
			(uint32_t)action->type == RULE_ACTION_REJECT;
	return rule_of_beginnings(&rule, drops);
}

/* It waits for conversations that no line of the whole file lets begin. */
static void warn_of_beginning(const struct checking *checking, const struct rule_command *command,
	struct opinion *opinion)
{
	if (opinion->software && opinion->warning.text[0] == '\0' &&
		beginnings_of(command) & RULE_NEEDS_BEGUN &&
		(checking->beginnings & (RULE_LETS_BEGIN | RULE_DROPS_ALL)) == RULE_DROPS_ALL)
		error_set(&opinion->warning, 0, RULES_NO_BEGINNING);
}

static void tell_right(const struct checking *checking, const struct rule_command *command,
	const struct opinion *opinion)
{
	static char rule[8 * RULE_LINE_MAX];

	if (!checking->json) {
		if (opinion->asked && !opinion->software)
			printf("%s:%u: ok, but not in software: %s\n", checking->name,
				checking->line, opinion->why.text);
		else if (opinion->warning.text[0] != '\0')
			printf("%s:%u: ok, with a warning: %s\n", checking->name, checking->line,
				opinion->warning.text);
		else if (opinion->foreseen && !opinion->known)
			printf("ok, where is not known: %s\n", opinion->alone.text);
		else if (opinion->foreseen && !opinion->for_nics)
			printf("ok, in software: %s\n", opinion->alone.text);
		else
			puts(opinion->foreseen ? "ok, for NICs that take it" : "ok");
		return;
	}
	rule_command_print(command, rule, sizeof(rule));
	begin_json(checking, true);
	print_text("rule", rule);
	if (opinion->asked) {
		printf(",\"software\":%s", opinion->software ? "true" : "false");
		if (!opinion->software)
			print_text("why", opinion->why.text);
		if (opinion->foreseen)
			print_text("where", !opinion->known	? "unknown"
					    : opinion->for_nics ? "nic"
								: "software");
		if (opinion->foreseen && (!opinion->known || !opinion->for_nics))
			print_text("why", opinion->alone.text);
		if (opinion->note.text[0] != '\0')
			print_text("note", opinion->note.text);
		if (opinion->warning.text[0] != '\0')
			print_text("warning", opinion->warning.text);
	}
	puts("}");
}

static void tell_wrong(
	struct checking *checking, int code, unsigned column, const struct error *error)
{
	checking->wrong = true;
	if (!checking->json) {
		printf("%s:%u:%u: error: %s\n", checking->name, checking->line, column,
			error->text);
		return;
	}
	begin_json(checking, false);
	printf(",\"column\":%u", column);
	print_text("error", error->text);
	printf(",\"parsed\":%s}\n", code == -ENOTSUP ? "true" : "false");
}

static int check_line(struct checking *checking, const char *line, size_t length)
{
	struct rule_command *command;
	struct error error = {""};
	unsigned column = 1;
	int ret = rule_command_parse(&command, checking->setup, line, length, &column, &error);

	if (ret == -ENODATA)
		return 0;
	if (ret < 0) {
		tell_wrong(checking, ret, column, &error);
		return ret == -ENOMEM ? ret : 0;
	}
	struct opinion opinion;

	ask_rules(checking, command, line, length, &opinion);
	warn_of_beginning(checking, command, &opinion);
	tell_right(checking, command, &opinion);
	ret = command->verb == RULE_SET ? rule_setup_learn(checking->setup, command) : 0;
	rule_command_destroy(command);
	return ret;
}

/* All of the file: whether some line jumps to a group is to be known before its first line is told. */
static int read_text(struct checking *checking)
{
	size_t room = 0, n;

	do {
		if (checking->size == room) {
			room = room == 0 ? 1 << 16 : 2 * room;
			char *larger = room <= 2 * RULES_FILE_MAX_BYTES
					       ? realloc(checking->text, room)
					       : NULL;

			if (larger == NULL)
				return say_error("no memory for the rules", EXIT_FAILURE);
			checking->text = larger;
		}
		n = fread(
			checking->text + checking->size, 1, room - checking->size, checking->file);
		checking->size += n;
	} while (n > 0);
	return EXIT_SUCCESS;
}

/* The next line without its end, of which no more is taken than makes it too long. False at the end. */
static bool next_line(
	const struct checking *checking, size_t *at, const char **line, size_t *length)
{
	if (*at >= checking->size)
		return false;
	const char *begin = checking->text + *at;
	const char *end = memchr(begin, '\n', checking->size - *at);
	const size_t whole = end != NULL ? (size_t)(end - begin) : checking->size - *at;

	*line = begin;
	*length = whole <= RULE_LINE_MAX ? whole : RULE_LINE_MAX + 1;
	*at += whole + 1;
	return true;
}

/* Notes the groups that a line jumps to, and what it has to do with how conversations begin, if rules ask for them. */
static void look_ahead(struct checking *checking, const char *line, size_t length)
{
	struct rule_command *command;
	struct error error;
	unsigned column;

	if ((!checking->conversations && memmem(line, length, "jump", strlen("jump")) == NULL) ||
		rule_command_parse(&command, NULL, line, length, &column, &error) < 0)
		return;
	for (const struct rte_flow_action *action = command->actions[0];
		action != NULL && action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		if (action->type == RTE_FLOW_ACTION_TYPE_JUMP && action->conf != NULL)
			checking->jumped |=
				UINT64_C(1)
				<< ((const struct rte_flow_action_jump *)action->conf)->group % 64;
	if (checking->conversations)
		checking->beginnings |= beginnings_of(command);
	rule_command_destroy(command);
}

static bool has_word(const struct checking *checking, const char *word)
{
	return memmem(checking->text, checking->size, word, strlen(word)) != NULL;
}

static int check_lines(struct checking *checking)
{
	char text[FILE_NAME_MAX + 64];
	size_t at, length;
	const char *line;
	int ret = read_text(checking);

	if (ret != EXIT_SUCCESS)
		return ret;
	const size_t mark = text_byte_order_mark(checking->text, checking->size);

	checking->conversations = has_word(checking, " ct ") || has_word(checking, " direction ");
	for (at = mark; next_line(checking, &at, &line, &length);)
		look_ahead(checking, line, length);
	at = mark;
	while (ret == 0 && next_line(checking, &at, &line, &length)) {
		checking->line++;
		ret = check_line(checking, line, length);
	}
	if (ret < 0)
		return say_error("no memory for the rules", EXIT_FAILURE);
	if (ferror(checking->file)) {
		snprintf(text, sizeof(text), "%s: %s", checking->name, strerror(errno));
		return say_error(text, EXIT_FAILURE);
	}
	return say_end(EXIT_SUCCESS) == EXIT_SUCCESS && !checking->wrong ? EXIT_SUCCESS
									 : EXIT_FAILURE;
}

static int check_file(const char *file, bool json, bool replies_follow)
{
	char name[FILE_NAME_MAX], text[FILE_NAME_MAX + 64];
	bool standard = strcmp(file, "-") == 0;
	struct checking checking = {
		.file = standard ? stdin : fopen(file, "r"),
		.name = text_printable(name, sizeof(name), file),
		.json = json,
		.setup = rule_setup_create(),
		.visits = FORESEEN_VISITS,
		.line_of = calloc(2 * COMPARED_RULES, sizeof(*checking.line_of)),
	};
	const struct rules_config config = {
		.max_rules = COMPARED_RULES,
		.n_workers = 1,
		.any_set = true,
		.replies_follow = replies_follow,
	};
	struct error error;
	int code = EXIT_FAILURE;

	if (!checking.file) {
		snprintf(text, sizeof(text), "%s: %s", name, strerror(errno));
		say_error(text, code);
	} else if (!checking.setup || !checking.line_of) {
		say_error("no memory for the rules", code);
	} else if (lone_rules_create(&checking.lone, &config, &error) < 0) {
		say_error(error.text, code);
	} else {
		code = check_lines(&checking);
	}
	if (checking.file && !standard)
		fclose(checking.file);
	rule_setup_destroy(checking.setup);
	lone_rules_fini(&checking.lone);
	free(checking.line_of);
	free(checking.text);
	return code;
}

int rule_check_main(int argc, char **argv)
{
	bool json = false, replies_follow = false;
	struct error error;
	int id;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (id) {
		case OPTION_JSON:
			json = true;
			break;
		case OPTION_RULES_REPLIES:
			if (run_rules_replies("--rules-replies", optarg, &replies_follow, &error) <
				0)
				return say_error(error.text, EXIT_MISUSED);
			break;
		case 'h':
		case OPTION_HELP:
			fputs(help, stdout);
			return say_end(EXIT_SUCCESS);
		default:
			option_refused(long_options, id, argv, &error);
			return say_error(error.text, EXIT_MISUSED);
		}
	}
	if (argc - optind > 1)
		return say_error("rule check: one file at a time", EXIT_MISUSED);
	return check_file(optind < argc ? argv[optind] : "-", json, replies_follow);
}
