/* A shared object that is no plug-in. */
int plugin_foreign(void);

int plugin_foreign(void)
{
    return 1;
}
